import type { QueuePlace } from '../../shared/infra/redis/requests/record-store.ts';
import { SSE_PING, ssePlace } from './answer.ts';

/** docs/spec.md#stream. */
const PING_MS = 15_000;
/** When a client whose request waits in line first gets its place; after that, it gets it with each ping. */
const PLACE_MS = 1_000;

export interface PingOptions {
  /** Milliseconds; shorter ones are for tests. */
  pingMs?: number;
  placeMs?: number;
  /** Reads the request's place in line; undefined if it does not wait. If absent, the client never gets its place. */
  place?: () => Promise<QueuePlace | undefined>;
}

export interface Pings {
  /** The request is admitted: sends at once what is already due, and the rest on time. */
  begin(): void;
  stop(): void;
}

/**
 * Keeps a client informed while its stream is silent: with pings, and until the first event with its place in line.
 * Times count from this call, but nothing is sent before `begin`: until then the request may be refused with an HTTP
 * status.
 */
export function startPings(
  { pingMs = PING_MS, placeMs = PLACE_MS, place }: PingOptions,
  hasText: () => boolean,
  send: (comment: string) => void,
): Pings {
  let hasBegun = false;
  let isOver = false;
  let pingIsDue = false;
  let placeIsDue = false;

  function ping(): void {
    pingIsDue = true;
    if (!hasBegun) return;
    send(SSE_PING);
    void sendPlace();
  }

  function firstPlace(): void {
    placeIsDue = true;
    void sendPlace();
  }

  /** If Redis does not answer, the next ping tries again. */
  async function sendPlace(): Promise<void> {
    if (!hasBegun || hasText()) return;
    const found = await place?.().catch(() => undefined);
    if (found !== undefined && !isOver && !hasText()) send(ssePlace(found));
  }

  const placeTimer = setTimeout(firstPlace, placeMs);
  const pingTimer = setInterval(ping, pingMs);
  return {
    begin() {
      if (isOver) return;
      hasBegun = true;
      if (hasText()) return;
      if (pingIsDue) ping();
      if (placeIsDue) firstPlace();
    },
    stop() {
      isOver = true;
      clearInterval(pingTimer);
      clearTimeout(placeTimer);
    },
  };
}
