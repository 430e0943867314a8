import { ServiceError } from '../../shared/errors/service-error.ts';

/** How many bodies may wait for their turn, and how much of the process they leave to others. */
export interface TurnRules {
  tenantWaitingMax: number;
  waitingMax: number;
  /** A pause follows each body, so many times as long as its work. */
  pauseRatio: number;
}

/** A turn takes some 0.1 s of the process. */
export const LARGE_BODY_TURNS: TurnRules = { tenantWaitingMax: 16, waitingMax: 64, pauseRatio: 3 };
/** Another thread does the work, mostly within a millisecond. */
export const BROTLI_TURNS: TurnRules = { tenantWaitingMax: 256, waitingMax: 1_024, pauseRatio: 0 };

const RETRY_SECONDS = 5;
/** A machine that stood still for a while is no reason to stand still for longer. */
const PAUSE_MS_MAX = 500;

/** Work on bodies that take long to inflate or to parse. */
export interface BodyTurns {
  /** Runs the work in the tenant's turn. Throws `model_unavailable` where too much waits already. */
  inTurn<T>(tenantId: string, work: () => Promise<T>): Promise<T>;
}

/**
 * One body at a time, tenants in turn, and a pause after each: however many large bodies come, they take a quarter of
 * the process's time at most, and the memory of a few.
 */
export function createBodyTurns({ tenantWaitingMax, waitingMax, pauseRatio }: TurnRules): BodyTurns {
  /** Tenants in the order of their turns, with what waits. */
  const waiting = new Map<string, (() => Promise<void>)[]>();
  let count = 0;
  let isRunning = false;

  function next(): (() => Promise<void>) | undefined {
    const [first] = waiting;
    if (first === undefined) return undefined;
    const [tenantId, works] = first;
    const work = works.shift();
    waiting.delete(tenantId);
    if (works.length > 0) waiting.set(tenantId, works);
    count -= 1;
    return work;
  }

  async function runAll(): Promise<void> {
    isRunning = true;
    for (let work = next(); work !== undefined; work = next()) {
      const startedAt = performance.now();
      await work();
      const pauseMs = Math.min(PAUSE_MS_MAX, pauseRatio * (performance.now() - startedAt));
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    isRunning = false;
  }

  return {
    inTurn<T>(tenantId: string, work: () => Promise<T>) {
      const own = waiting.get(tenantId) ?? [];
      if (own.length >= tenantWaitingMax || count >= waitingMax) {
        throw new ServiceError(
          'model_unavailable',
          'Too many large request bodies wait to be read; try again shortly.',
          {
            retryAfterSeconds: RETRY_SECONDS,
          },
        );
      }
      return new Promise<T>((resolve, reject) => {
        waiting.set(tenantId, own);
        own.push(() => work().then(resolve, reject));
        count += 1;
        if (!isRunning) void runAll();
      });
    },
  };
}
