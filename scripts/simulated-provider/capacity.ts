import type { ServerResponse } from 'node:http';
import type { Settings } from './settings.ts';

const MINUTE_MS = 60_000;

interface Bucket {
  limit: number;
  level: number;
  at: number;
}

interface ModelCapacity {
  requests: Bucket | undefined;
  tokens: Bucket | undefined;
  running: number;
  queue: (() => void)[];
}

/** What the provider can do at once (`slots`) and in a minute (`rpm`, `tpm`), by model. */
export interface Capacity {
  /** Counts a call, and says so in the answer's headers. Returns the seconds until it may be tried again; 0: it is let in. */
  admit(model: string, settings: Settings, tokens: number, res: ServerResponse): number;
  /**
   * Starts the answer as soon as a slot is free, unless the caller has left by then. The slot is free again when the answer
   * has ended.
   */
  start(model: string, settings: Settings, res: ServerResponse, answer: () => void): void;
  reset(): void;
}

/** Refills evenly, as OpenAI's do; a limit that is changed applies at once. */
function refilled(bucket: Bucket | undefined, limit: number | null, now: number): Bucket | undefined {
  if (limit === null) return undefined;
  if (bucket === undefined) return { limit, level: limit, at: now };
  const level = bucket.level + ((now - bucket.at) * limit) / MINUTE_MS;
  return { limit, level: Math.min(limit, level), at: now };
}

function secondsUntil({ limit, level }: Bucket, needed: number): number {
  return level >= needed ? 0 : Math.max(1, Math.ceil(((needed - level) / limit) * 60));
}

export function createCapacity(): Capacity {
  const models = new Map<string, ModelCapacity>();

  function of(model: string): ModelCapacity {
    const known = models.get(model) ?? { requests: undefined, tokens: undefined, running: 0, queue: [] };
    models.set(model, known);
    return known;
  }

  return {
    admit(model, { rpm, tpm }, tokens, res) {
      if (rpm === null && tpm === null) return 0;
      const own = of(model);
      own.requests = refilled(own.requests, rpm, performance.now());
      own.tokens = refilled(own.tokens, tpm, performance.now());
      const wait = Math.max(
        own.requests === undefined ? 0 : secondsUntil(own.requests, 1),
        own.tokens === undefined ? 0 : secondsUntil(own.tokens, Math.min(tokens, own.tokens.limit)),
      );
      for (const [name, bucket, taken] of [
        ['requests', own.requests, 1],
        ['tokens', own.tokens, tokens],
      ] as const) {
        if (bucket === undefined) continue;
        if (wait === 0) bucket.level -= taken;
        res.setHeader(`x-ratelimit-limit-${name}`, bucket.limit);
        res.setHeader(`x-ratelimit-remaining-${name}`, Math.max(0, Math.floor(bucket.level)));
        res.setHeader(`x-ratelimit-reset-${name}`, `${secondsUntil(bucket, bucket.limit)}s`);
      }
      return wait;
    },

    start(model, { slots }, res, answer) {
      if (slots === null) {
        answer();
        return;
      }
      const own = of(model);
      const begin = () => {
        own.running += 1;
        res.once('close', () => {
          own.running -= 1;
          own.queue.shift()?.();
        });
        answer();
      };
      if (own.running < slots) {
        begin();
        return;
      }
      own.queue.push(begin);
      res.once('close', () => {
        const index = own.queue.indexOf(begin);
        if (index !== -1) own.queue.splice(index, 1);
      });
    },

    reset() {
      models.clear();
    },
  };
}
