import type { Response } from 'express';

import type { StreamEntry, Terminal } from '../../shared/contracts/events.ts';
import { outOfTime, ServiceError } from '../../shared/errors/service-error.ts';
import { completeAnswer, embeddingPieces, brokenOff, DEADLINE_MARGIN_MS, errorOf } from './sse.ts';
import type { AnswerHead, OpenAiForm } from './sse.ts';
import type { RelayHub } from './hub.ts';

interface Collected {
  lines: string[];
  terminal: Terminal;
}

export interface CollectOptions {
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
export function onAbort(signal: AbortSignal, act: () => void): () => void {
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

/** Counts the answers that `onAbort` would end. */
export const countWaiting = (signal: AbortSignal): number => waiting.get(signal)?.size ?? 0;

/** The error of an answer that this server can wait for no longer. */
export function restarts(requestId: string): ServiceError {
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
    /** Resolves with the JSON text of the complete answer, a very long one in pieces; throws the error that ended the request. */
    async answer(head: AnswerHead): Promise<string | Iterable<string>> {
      reader.confirm();
      const { terminal } = await collected.promise;
      const error = errorOf(terminal, lines.length > 0);
      // A request made for a complete answer has sent none of its text if it fails.
      if (error !== undefined) throw lines.length > 0 ? brokenOff(error) : error;
      return head.kind === 'embedding'
        ? embeddingPieces(head, lines, terminal)
        : completeAnswer(head, lines, terminal, form);
    },
  };
}
