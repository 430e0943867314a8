import { ServiceError } from '../../shared/errors/service-error.ts';

/** Bodies that may wait for their turn: a turn takes some 0.1 s, and a pause follows. */
const TENANT_WAITING_MAX = 16;
const WAITING_MAX = 64;
const RETRY_SECONDS = 5;
/** What is left to others is so much more than what large bodies take. */
const PAUSE_RATIO = 3;
/** A machine that stood still for a while is no reason to stand still for longer. */
const PAUSE_MS_MAX = 500;

/** Work on bodies that take tens of milliseconds each to inflate and parse. */
export interface LargeBodies {
  /** Runs the work in the tenant's turn. Throws `model_unavailable` where too much waits already. */
  inTurn<T>(tenantId: string, work: () => Promise<T>): Promise<T>;
}

/**
 * One body at a time, tenants in turn, and after each a pause three times as long as it took: however many large bodies
 * come, they take a quarter of the process's time at most, and the memory of a few.
 */
export function createLargeBodies(): LargeBodies {
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
      const pauseMs = Math.min(PAUSE_MS_MAX, PAUSE_RATIO * (performance.now() - startedAt));
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    isRunning = false;
  }

  return {
    inTurn<T>(tenantId: string, work: () => Promise<T>) {
      const own = waiting.get(tenantId) ?? [];
      if (own.length >= TENANT_WAITING_MAX || count >= WAITING_MAX) {
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
