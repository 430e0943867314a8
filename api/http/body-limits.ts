import { ServiceError } from '../../shared/errors/service-error.ts';

/** How large one body may be. */
export interface BodyLimit {
  /** Applies to the bytes as they were sent, and again after decompression. */
  bytes: number;
  /** Creates the error for a larger body. */
  fault: () => ServiceError;
}

const MEBIBYTE = 1024 * 1024;

/** How much all bodies being read may hold together (docs/spec.md#bodies). */
const TENANT_BYTES_MAX = 64 * MEBIBYTE;
const PROCESS_BYTES_MAX = 512 * MEBIBYTE;

/** A body usually arrives within seconds; a stalled one is given up after half a minute. */
const RETRY_SECONDS = 5;

/** One body's share of the budget. */
export interface BodyShare {
  /** From now on, the body holds this many bytes. Throws `model_unavailable` if there is no room for them. */
  hold(bytes: number): void;
  /** The body is no longer held. Safe to repeat. */
  close(): void;
}

/** The bytes that bodies hold while they are read, per tenant and in total. */
export type BodyBudget = ReturnType<typeof createBodyBudget>;

function noRoom(whose: string): ServiceError {
  return new ServiceError(
    'model_unavailable',
    `${whose} request bodies take all the room there is; try again shortly.`,
    {
      retryAfterSeconds: RETRY_SECONDS,
    },
  );
}

/** Keeps many slowly arriving bodies, of one tenant or of many, from using up the memory of the process. */
export function createBodyBudget(tenantBytesMax = TENANT_BYTES_MAX, processBytesMax = PROCESS_BYTES_MAX) {
  const byTenant = new Map<string, number>();
  let all = 0;

  return {
    open(tenantId: string): BodyShare {
      let held = 0;

      function change(bytes: number): void {
        const ofTenant = (byTenant.get(tenantId) ?? 0) + bytes;
        if (ofTenant > 0) byTenant.set(tenantId, ofTenant);
        else byTenant.delete(tenantId);
        all += bytes;
        held += bytes;
      }

      return {
        hold(bytes) {
          const more = bytes - held;
          if (more > 0 && (byTenant.get(tenantId) ?? 0) + more > tenantBytesMax) throw noRoom("The account's");
          if (more > 0 && all + more > processBytesMax) throw noRoom('Other');
          change(more);
        },
        close() {
          change(-held);
        },
      };
    },
  };
}

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

const TURN_RETRY_SECONDS = 5;
/** Limits the pause: after the machine has stood still for a while, work should not stand still even longer. */
const PAUSE_MS_MAX = 500;

/**
 * Handles one body at a time, tenants in turn, with a pause after each: however many large bodies come, they take at
 * most a quarter of the process's time, and the memory of a few.
 */
export function createBodyTurns({ tenantWaitingMax, waitingMax, pauseRatio }: TurnRules) {
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
    /** Runs the work in the tenant's turn. Throws `model_unavailable` if too much is waiting already. */
    inTurn<T>(tenantId: string, work: () => Promise<T>): Promise<T> {
      const own = waiting.get(tenantId) ?? [];
      if (own.length >= tenantWaitingMax || count >= waitingMax) {
        throw new ServiceError(
          'model_unavailable',
          'Too many large request bodies wait to be read; try again shortly.',
          {
            retryAfterSeconds: TURN_RETRY_SECONDS,
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
