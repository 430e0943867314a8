import type { ErrorCode } from '../errors/codes.ts';
import { toErrorDetail } from '../errors/error-body.ts';
import type { ErrorDetail } from '../errors/error-body.ts';
import { unexpectedError } from '../errors/service-error.ts';

/** One provider call of a request, or a target that was skipped, for its timeline. Never any text. */
export interface AttemptTrace {
  provider: string;
  model: string;
  /** Milliseconds since the epoch. */
  startedAt: number;
  endedAt: number;
  /** `ok`, why the call failed in an operator's words, or `breaker_open`: it was not made. */
  outcome: string;
}

/** Moderation's last verdict: first on the submitted messages, then on the answer. */
export interface ModerationTrace {
  backend: string;
  /** `unavailable`: the backend gave no verdict, so the request was refused. */
  verdict: 'passed' | 'flagged_input' | 'flagged_output' | 'unavailable';
  categories: string[];
}

/** The trace of a request by its worker, besides the times in its record. */
export interface RequestTrace {
  moderatedAt?: number;
  moderation?: ModerationTrace;
  /** Why it failed, if no provider's failure is the cause. */
  reason?: 'no_provider_routed' | 'worker_died';
  attempts: AttemptTrace[];
}

/** Why a request failed, for operators: its code, and what failed last, with the number of the provider call. */
export function failureOf(code: ErrorCode, { reason, attempts }: RequestTrace): string {
  const index = attempts.findLastIndex(({ outcome }) => outcome !== 'ok');
  const failed = attempts[index];
  if (failed === undefined || reason !== undefined) return reason === undefined ? code : `${code}: ${reason}`;
  return `${code}: ${failed.provider} ${failed.model} ${failed.outcome}, attempt ${index + 1}`;
}

/** docs/spec.md#chat-completion. */
export type FinishReason = 'stop' | 'length' | 'content_filter' | 'cancelled' | 'error';

export interface Usage {
  promptTokens: number;
  completionTokens: number;
  /** Counted by our own tokenizer because the provider did not say. */
  estimated?: boolean;
}

/** The wire's form. */
export function toWireUsage({ promptTokens, completionTokens }: Usage) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

/** The one event that ends a request. An `error` without any text before it is an HTTP status at the ingress. */
export interface Terminal {
  finishReason: FinishReason;
  usage: Usage;
  error?: ErrorDetail;
  /** For the look-up of the request; not shown in the stream. */
  trace?: RequestTrace;
}

/** The end of a request that will not be answered: it was lost, or voided before it was queued. */
export const LOST: Terminal = {
  finishReason: 'error',
  usage: { promptTokens: 0, completionTokens: 0 },
  error: {
    code: 'model_unavailable',
    message: 'The request was lost before its answer was complete; send it again.',
    retryAfterSeconds: 1,
  },
};

/** The end of an answer that a fault of the service itself cuts short. */
export const FAULT: Terminal = {
  finishReason: 'error',
  usage: { promptTokens: 0, completionTokens: 0 },
  error: toErrorDetail(unexpectedError()),
};

/**
 * One entry of a request's stream: text increments, then perhaps the end. Its payload has one line for each: an
 * increment is a JSON string, the end a JSON object. A reader tells them apart by the first character and can forward
 * an increment without decoding it. A JSON string holds no raw line break, so line breaks are safe separators.
 */
export interface StreamEntry {
  /** The sequence number of the entry's last event. */
  lastSeq: number;
  /** JSON string literals, quotes included. */
  deltas: string[];
  terminal?: Terminal;
  /** Names the claim of the delivery that wrote it. Absent in restored answers, and if no delivery wrote the end. */
  writer?: string;
}

/** A final chunk and `[DONE]`; an error ends the stream without `[DONE]` (docs/spec.md#stream-failure). */
export function eventsOf(terminal: Terminal): number {
  return terminal.finishReason === 'error' ? 1 : 2;
}

/** The sequence number of the entry's first event. */
export function firstSeqOf(entry: StreamEntry): number {
  return entry.lastSeq - entry.deltas.length - (entry.terminal === undefined ? 0 : eventsOf(entry.terminal)) + 1;
}

/** The payload of an entry; `deltas` are plain text, not yet literals. */
export function encodeEntry(deltas: readonly string[], terminal?: Terminal): string {
  const lines = deltas.map((delta) => JSON.stringify(delta));
  if (terminal !== undefined) lines.push(JSON.stringify(terminal));
  return lines.join('\n');
}

/** `head`: last sequence number and, perhaps, the writer of the entry (emit.lua). */
export function decodeMessage(head: string, payload: string): StreamEntry {
  const [lastSeq, writer] = head.split(' ');
  const entry = decodeEntry(Number(lastSeq), payload);
  return writer === undefined ? entry : { ...entry, writer };
}

/** Throws on text that `encodeEntry` did not write. */
export function decodeEntry(lastSeq: number, payload: string): StreamEntry {
  const lines = payload === '' ? [] : payload.split('\n');
  const last = lines.at(-1);
  if (last?.startsWith('{') !== true) return { lastSeq, deltas: lines };
  // Written by encodeEntry, in this repository, as a Terminal.
  return { lastSeq, deltas: lines.slice(0, -1), terminal: JSON.parse(last) as Terminal };
}
