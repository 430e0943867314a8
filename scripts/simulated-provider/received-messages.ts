import { createBoundedMap } from './bounded-map.ts';

const REQUESTS_MAX = 2_000;
/** In prompt tokens of about 4 bytes, because 2,000 of the largest bodies would not fit into memory. */
const TOKENS_MAX = 8 * 1024 * 1024;

export interface ReceivedMessages {
  keep(requestId: string, messages: readonly unknown[], tokens: number): void;
  of(requestId: string): readonly unknown[] | null;
  clear(): void;
}

/** Keeps the messages of the latest calls in memory, so that a test can see what reached the provider. */
export function createReceivedMessages(): ReceivedMessages {
  const kept = createBoundedMap<{ messages: readonly unknown[]; tokens: number }>(REQUESTS_MAX);
  let tokensKept = 0;

  function forget(requestId: string): void {
    tokensKept -= kept.get(requestId)?.tokens ?? 0;
    kept.delete(requestId);
  }

  function forgetOldest(): void {
    for (const [requestId] of kept.entries()) {
      forget(requestId);
      return;
    }
  }

  return {
    keep(requestId, messages, tokens) {
      forget(requestId);
      while (kept.size > 0 && (kept.size >= REQUESTS_MAX || tokensKept + tokens > TOKENS_MAX)) forgetOldest();
      kept.set(requestId, { messages, tokens });
      tokensKept += tokens;
    },
    of: (requestId) => kept.get(requestId)?.messages ?? null,
    clear() {
      kept.clear();
      tokensKept = 0;
    },
  };
}
