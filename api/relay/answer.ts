import type { Response } from 'express';

import { firstSeqOf } from '../../shared/contracts/events.ts';
import type { StreamEntry, Terminal } from '../../shared/contracts/events.ts';
import { outOfTime, ServiceError } from '../../shared/errors/service-error.ts';
import type { QueuePlace } from '../../shared/requests/record-store.ts';
import type { Reader, RelayHub } from './hub.ts';
import { createPacedWriter } from './paced-writer.ts';
import {
  DEADLINE_MARGIN_MS,
  SSE_PING,
  createSseWriter,
  errorOf,
  sseLastWord,
  ssePlace,
  timedOut,
  completeAnswer,
  brokenOff,
} from './sse.ts';
import type { AnswerHead, JsonText, OpenAiForm } from './sse.ts';

interface Collected {
  lines: string[];
  terminal: Terminal;
}

interface CollectOptions {
  shard: number;
  requestId: string;
  /** The stream may have begun. */
  existing?: boolean;
  timeoutMs: number;
  form?: OpenAiForm | undefined;
  /** Aborts when this ingress can no longer wait; the request itself goes on. */
  stopping: AbortSignal;
}

interface Box {
  act: (() => void) | undefined;
}

/**
 * In boxes that are emptied when their answers end: a table that a set has outgrown keeps its entries alive until V8's
 * next full collection, and with them nearly every answer (docs/benchmarks/performance-log.md).
 */
const waiting = new WeakMap<AbortSignal, Set<Box>>();

/**
 * Calls `act` when `signal` aborts; returns a function that cancels this. All waiting callers share one listener,
 * because adding one walks all that exist: 7 µs with 2,000 waiting callers.
 */
function onAbort(signal: AbortSignal, act: () => void): () => void {
  let all = waiting.get(signal);
  if (all === undefined) {
    const acts = new Set<Box>();
    signal.addEventListener('abort', () => {
      for (const each of acts) each.act?.();
    });
    waiting.set(signal, acts);
    all = acts;
  }
  const box: Box = { act };
  const acts = all.add(box);
  return () => {
    box.act = undefined;
    acts.delete(box);
  };
}

export const countWaiting = (signal: AbortSignal): number => waiting.get(signal)?.size ?? 0;

/** The error of an answer that this server can wait for no longer. */
function restarts(requestId: string): ServiceError {
  return new ServiceError(
    'model_unavailable',
    `This server restarts and can wait no longer; go on at once with GET /chat/stream/${requestId} (scope chat.stream), or send the same call again if it had an Idempotency-Key. A request that nobody reads may be cancelled.`,
    { retryAfterSeconds: 1 },
  );
}

/** Collects a request's whole stream. Open it before the request is admitted, so that it misses nothing. */
export function openCollector(hub: RelayHub, res: Response, options: CollectOptions) {
  const { shard, requestId, existing, timeoutMs, form, stopping } = options;
  const lines: string[] = [];
  const collected = Promise.withResolvers<Collected>();
  collected.promise.catch(() => undefined);
  const onEntry = (entry: StreamEntry) => {
    // One by one: a call takes only some 100,000 arguments, and a provider may send more pieces.
    for (const line of entry.deltas) lines.push(line);
    if (entry.terminal !== undefined) collected.resolve({ lines, terminal: entry.terminal });
  };
  const reader = hub.open(shard, requestId, onEntry, { existing, isAwaited: existing !== true });
  const timer = setTimeout(() => {
    collected.reject(outOfTime());
  }, timeoutMs + DEADLINE_MARGIN_MS);
  const endWait = onAbort(stopping, () => {
    collected.reject(restarts(requestId));
  });
  const stop = () => {
    endWait();
    clearTimeout(timer);
  };
  const close = () => {
    stop();
    reader.close();
  };
  res.once('close', close);
  // If the client has already left, there is no more `close` event.
  if (res.closed) close();

  return {
    close,
    /** The request was not admitted. */
    abandon(): void {
      stop();
      reader.abandon();
    },
    /** Resolves with the complete answer; throws the error that ended the request. */
    async answer(head: AnswerHead): Promise<JsonText> {
      reader.confirm();
      const { terminal } = await collected.promise;
      const error = errorOf(terminal, lines.length > 0);
      // A request made for a complete answer has sent none of its text if it fails.
      if (error !== undefined) throw lines.length > 0 ? brokenOff(error) : error;
      return completeAnswer(head, lines, terminal, form);
    },
  };
}

/** docs/spec.md#stream. */
const PING_MS = 15_000;
/** A client whose request waits in line first gets its place after this time, then with each ping. */
const PLACE_MS = 1_000;

interface PingOptions {
  /** Milliseconds; shorter ones are for tests. */
  pingMs?: number;
  placeMs?: number;
  /** Reads the request's place in line; undefined if it does not wait. If absent, the client never gets its place. */
  place?: () => Promise<QueuePlace | undefined>;
}

/**
 * Keeps a client informed while its stream is silent: with pings, and until the first event with its place in line.
 * Times count from this call, but nothing is sent before `begin`: until then the request may be refused with an HTTP
 * status.
 */
function startPings(
  { pingMs = PING_MS, placeMs = PLACE_MS, place }: PingOptions,
  hasText: () => boolean,
  send: (comment: string) => void,
) {
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
    /** The request is admitted: sends at once what is already due, and the rest on time. */
    begin(): void {
      if (isOver) return;
      hasBegun = true;
      if (hasText()) return;
      if (pingIsDue) ping();
      if (placeIsDue) firstPlace();
    },
    stop(): void {
      isOver = true;
      clearInterval(pingTimer);
      clearTimeout(placeTimer);
    },
  };
}

/** A client that reads nothing for this long counts as gone (docs/decisions/0006-answer-streams.md). */
export const DRAIN_MS = 30_000;

export const SSE_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

/** Lets tests shorten the times of the interface. */
export interface RelayTimes extends Pick<PingOptions, 'pingMs' | 'placeMs'> {
  drainMs?: number;
  /** The relay waits this much longer than the request's time limit for the terminal event. */
  marginMs?: number;
}

export interface ForwardOptions extends RelayTimes, Pick<PingOptions, 'place'> {
  shard: number;
  requestId: string;
  /** An earlier call made the request, so the stream may have begun. */
  existing?: boolean;
  /** Sequence number of the first event to write; the client has the earlier ones. */
  fromSeq?: number;
  timeoutMs: number;
  /** Aborts when this ingress can no longer wait; the request itself goes on. Absent: it never does. */
  stopping?: AbortSignal;
  form?: OpenAiForm | undefined;
}

export type Forwarder = ReturnType<typeof openForwarder>;

const ignore = () => undefined;

/** Sends the status line: from then on a failure is an event of the stream, not an HTTP status. */
function commit(res: Response): void {
  if (!res.headersSent) res.writeHead(200, SSE_HEADERS);
}

/** The error of a request that failed before it had text, if it can still be answered with an HTTP status. */
function failureBeforeCommit(entry: StreamEntry, res: Response): ServiceError | undefined {
  const { terminal, deltas } = entry;
  if (terminal === undefined || res.headersSent) return undefined;
  return firstSeqOf(entry) === 1 && deltas.length === 0 ? errorOf(terminal, false) : undefined;
}

/** Entries wait in memory until `begin`. `onFailed`: failed before the status line; `onEnded`: all is written. */
function createEventWriter(
  res: Response,
  writer: ReturnType<typeof createPacedWriter>,
  { requestId, fromSeq = 1, form }: ForwardOptions,
  { onFailed, onEnded }: { onFailed: (error: ServiceError) => void; onEnded: () => void },
) {
  const early: StreamEntry[] = [];
  let sse: ReturnType<typeof createSseWriter> | undefined;
  let nextSeq = fromSeq;
  let isCut = false;

  function write(entry: StreamEntry): void {
    if (isCut) return;
    if (sse === undefined) {
      early.push(entry);
      return;
    }
    const failure = failureBeforeCommit(entry, res);
    if (failure !== undefined) {
      onFailed(failure);
      return;
    }
    commit(res);
    nextSeq = entry.lastSeq + 1;
    const text = sse.events(entry, fromSeq);
    if (entry.terminal === undefined) {
      writer.write(text);
      return;
    }
    writer.end(text);
    onEnded();
  }

  return {
    write,
    hasText: () => nextSeq > fromSeq,
    begin(head: AnswerHead): void {
      sse = createSseWriter(head, form);
      early.splice(0).forEach(write);
    },
    /** The time limit is over, and no worker is left to end the request. */
    endOverdue(): void {
      if (res.headersSent) write({ lastSeq: nextSeq, deltas: [], terminal: timedOut() });
      else onFailed(outOfTime());
    },
    /**
     * Says where the answer goes on and ends the connection amid it, so that nobody takes the part for the whole. The
     * comment is the last line: text behind it would come twice to whoever goes on from there.
     */
    cut(): void {
      if (!res.headersSent) {
        onFailed(restarts(requestId));
        return;
      }
      isCut = true;
      res.write(sseLastWord(requestId, nextSeq - 1));
      res.socket?.destroySoon();
      onEnded();
    },
  };
}

/** Calls `expire` at the time limit. Before that, a slow client may read what is there. */
function startDeadline(
  writer: ReturnType<typeof createPacedWriter>,
  { limitMs, drainMs }: { limitMs: number; drainMs: number },
  expire: () => void,
): () => void {
  let timer = setTimeout(check, limitMs);
  function check(): void {
    if (writer.wasBlocked()) timer = setTimeout(check, drainMs);
    else expire();
  }
  return () => {
    clearTimeout(timer);
  };
}

/** Open it before the request is admitted, so that it misses no event; ping times count from then. */
export function openForwarder(hub: RelayHub, res: Response, options: ForwardOptions) {
  const { shard, requestId, existing, fromSeq = 1, timeoutMs, stopping } = options;
  const { drainMs = DRAIN_MS, marginMs = DEADLINE_MARGIN_MS } = options;
  /** Settles `forward`: rejects on a failure before the status line, resolves when stream or connection ends. */
  const done = Promise.withResolvers<undefined>();
  done.promise.catch(ignore);

  const writer = createPacedWriter(res, drainMs, {
    onBlocked: () => {
      reader.pause();
    },
    onDrained: () => {
      reader.resume();
    },
  });
  const events = createEventWriter(res, writer, options, {
    onFailed(error) {
      stopTimers();
      done.reject(error);
    },
    onEnded: () => {
      done.resolve(undefined);
    },
  });
  const reader: Reader = hub.open(shard, requestId, events.write, { existing, fromSeq, isAwaited: existing !== true });
  const pings = startPings(options, events.hasText, (comment) => {
    commit(res);
    if (!writer.isBlocked()) writer.write(comment);
  });
  const endDeadline = startDeadline(writer, { limitMs: timeoutMs + marginMs, drainMs }, events.endOverdue);
  const endWait = stopping === undefined ? ignore : onAbort(stopping, events.cut);

  function stopTimers(): void {
    endWait();
    endDeadline();
    pings.stop();
  }

  function close(): void {
    stopTimers();
    writer.close();
    reader.close();
    done.resolve(undefined);
  }
  res.once('close', close);
  // A client that left earlier causes no more `close` event.
  if (res.closed) close();
  // A write may fail because the client has just left, which is not an error.
  res.on('error', close);

  return {
    close,
    /** To be called instead of `forward` if the request is not admitted. */
    abandon(): void {
      stopTimers();
      writer.close();
      reader.abandon();
      res.off('close', close);
    },
    /**
     * To be called once the request is admitted. Writes the stream until it ends, the client leaves or `close` is called.
     * Throws only before the status line, which the first event or ping sends (docs/spec.md#stream).
     */
    async forward(head: AnswerHead): Promise<void> {
      reader.confirm();
      events.begin(head);
      pings.begin();
      try {
        await done.promise;
      } finally {
        stopTimers();
        reader.close();
      }
    },
  };
}
