import { ServiceError } from '../../shared/errors/service-error.ts';

/** How many bodies may wait for their turn, and how much processing time they leave to other work. */
export interface TurnRules {
  tenantWaitingMax: number;
  waitingMax: number;
  /** Each body is followed by a pause, this many times as long as its work took. */
  pauseRatio: number;
}

/** A turn takes some 0.1 s of processing time. */
export const LARGE_BODY_TURNS: TurnRules = { tenantWaitingMax: 16, waitingMax: 64, pauseRatio: 3 };
/** Another thread does the work, mostly within a millisecond. */
export const BROTLI_TURNS: TurnRules = { tenantWaitingMax: 256, waitingMax: 1_024, pauseRatio: 0 };

const RETRY_SECONDS = 5;
/** Limits the pause: after the machine has stood still for a while, work should not stand still even longer. */
const PAUSE_MS_MAX = 500;

/** Takes turns at work on bodies that take long to inflate or parse. */
export interface BodyTurns {
  /** Runs the work in the tenant's turn. Throws `model_unavailable` if too much is waiting already. */
  inTurn<T>(tenantId: string, work: () => Promise<T>): Promise<T>;
}

/**
 * Handles one body at a time, tenants in turn, with a pause after each: however many large bodies come, they take at
 * most a quarter of the process's time, and the memory of a few.
 */
export function createBodyTurns({ tenantWaitingMax, waitingMax, pauseRatio }: TurnRules): BodyTurns {
  /** Tenants in the order of their turns, with their waiting work. */
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
