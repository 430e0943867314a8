import type { Response } from 'express';

import { firstSeqOf } from '../../shared/contracts/events.ts';
import type { StreamEntry } from '../../shared/contracts/events.ts';
import type { QueuePlace } from '../../shared/infra/redis/requests/record-store.ts';
import { SSE_PING, createSseWriter, ssePlace } from './answer.ts';
import type { AnswerHead } from './answer.ts';
import type { Reader, RelayHub } from './hub.ts';
import { createPacedWriter } from './paced-writer.ts';
import { DEADLINE_MARGIN_MS, errorOf, relayTimeout, timedOut } from './outcome.ts';

/** docs/spec/interface.md section 8. */
const PING_MS = 15_000;
/** When a client that waits in line is first told its place. */
const PLACE_MS = 1_000;
/** A client that reads nothing for this long has gone (docs/architecture/facts.md section 4). */
export const DRAIN_MS = 30_000;

export const SSE_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

/** Shorter times than those of the interface, for tests. */
export interface RelayTimes {
  pingMs?: number;
  placeMs?: number;
  drainMs?: number;
  /** How long the relay waits for an end after the request's time limit. */
  marginMs?: number;
}

export interface ForwardOptions extends RelayTimes {
  shard: number;
  requestId: string;
  /** The stream may have begun. */
  existing?: boolean;
  /** The first event to write; the client has those before it. */
  fromSeq?: number;
  timeoutMs: number;
  /** Reads the request's place in line; undefined: it does not wait. Absent: the client is not told its place. */
  place?: () => Promise<QueuePlace | undefined>;
}

export interface Forwarder {
  /**
   * Writes the stream until it ends, the client leaves or `close`. Throws only before the status line is sent: the
   * first event or the first ping commits to 200 (docs/spec/contract.md section 3).
   */
  forward(head: AnswerHead): Promise<void>;
  close(): void;
  /** The request was not admitted. */
  abandon(): void;
}

/** Forwards a request's stream as SSE. Open it before the request is admitted: it misses nothing, and pings count from then. */
export function openForwarder(hub: RelayHub, res: Response, options: ForwardOptions): Forwarder {
  const { shard, requestId, existing, fromSeq = 1, timeoutMs, place } = options;
  const { pingMs = PING_MS, placeMs = PLACE_MS, drainMs = DRAIN_MS, marginMs = DEADLINE_MARGIN_MS } = options;
  const done = Promise.withResolvers<undefined>();
  done.promise.catch(() => undefined);
  const early: StreamEntry[] = [];
  let write: ((entry: StreamEntry) => void) | undefined;
  let pingIsDue = false;
  let placeIsDue = false;
  let isOver = false;
  /** Sequence number of the next event. */
  let nextSeq = fromSeq;

  const onAny = (entry: StreamEntry) => {
    if (write === undefined) early.push(entry);
    else write(entry);
  };
  const reader: Reader = hub.open(shard, requestId, onAny, { existing, fromSeq, isAwaited: existing !== true });

  function commit(): void {
    if (!res.headersSent) res.writeHead(200, SSE_HEADERS);
  }

  /** Since the deadline was last set. */
  let wasBlocked = false;
  const writer = createPacedWriter(res, drainMs, {
    onBlocked: () => {
      wasBlocked = true;
      reader.pause();
    },
    onDrained: () => {
      reader.resume();
    },
  });

  function sendPing(): void {
    commit();
    if (!writer.isBlocked()) writer.write(SSE_PING);
    void sendPlace();
  }

  /** Does nothing if Redis does not answer: the next ping tries again. */
  async function sendPlace(): Promise<void> {
    if (write === undefined || nextSeq > fromSeq) return;
    const found = await place?.().catch(() => undefined);
    if (found === undefined || isOver || nextSeq > fromSeq || writer.isBlocked()) return;
    commit();
    writer.write(ssePlace(found));
  }

  const firstPlace = setTimeout(() => {
    placeIsDue = true;
    void sendPlace();
  }, placeMs);
  const ping = setInterval(() => {
    // Before `forward` the request may still be refused with an HTTP status.
    if (write === undefined) pingIsDue = true;
    else sendPing();
  }, pingMs);
  let deadline = setTimeout(expire, timeoutMs + marginMs);

  /** By now no worker lives that could end the request, so the relay ends the stream, once its client has read what there is. */
  function expire(): void {
    if (wasBlocked) {
      wasBlocked = writer.isBlocked();
      deadline = setTimeout(expire, drainMs);
    } else if (res.headersSent) write?.({ lastSeq: nextSeq, deltas: [], terminal: timedOut() });
    else done.reject(relayTimeout());
  }

  function stopTimers(): void {
    isOver = true;
    clearInterval(ping);
    clearTimeout(firstPlace);
    clearTimeout(deadline);
  }

  function stop(): void {
    stopTimers();
    writer.close();
  }

  function close(): void {
    stop();
    reader.close();
    done.resolve(undefined);
  }
  res.once('close', close);
  // If the client has left already there is no event any more.
  if (res.closed) close();
  // A write may race with the client's leaving, which is no fault.
  res.on('error', close);

  return {
    close,
    abandon() {
      stop();
      reader.abandon();
      res.off('close', close);
    },
    async forward(head) {
      reader.confirm();
      const sse = createSseWriter(head);
      const onEntry = (entry: StreamEntry): void => {
        const { terminal } = entry;
        if (terminal !== undefined && firstSeqOf(entry) === 1 && entry.deltas.length === 0 && !res.headersSent) {
          const error = errorOf(terminal, false);
          if (error !== undefined) {
            done.reject(error);
            return;
          }
        }
        commit();
        nextSeq = entry.lastSeq + 1;
        const text = sse.events(entry, fromSeq);
        if (terminal === undefined) {
          writer.write(text);
          return;
        }
        writer.end(text);
        done.resolve(undefined);
      };
      write = onEntry;
      if (pingIsDue && early.length === 0) sendPing();
      for (const entry of early.splice(0)) onEntry(entry);
      if (placeIsDue) void sendPlace();
      try {
        await done.promise;
      } finally {
        stopTimers();
        reader.close();
      }
    },
  };
}
