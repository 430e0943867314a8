import type { ErrorCode } from '../errors/codes.ts';
import { toErrorDetail } from '../errors/error-body.ts';
import type { ErrorDetail } from '../errors/error-body.ts';
import { unexpectedError } from '../errors/service-error.ts';
import { isRecord } from './parse.ts';

/** For a request's timeline: one provider call, or a skipped target. Never any text. */
export interface TracedRoute {
  provider: string;
  model: string;
}

export interface AttemptTrace extends TracedRoute {
  /** Milliseconds since the epoch. */
  startedAt: number;
  endedAt: number;
  /** `ok`, an operator's words for a failure, or `breaker_open`: the call was not made. */
  outcome: string;
}

/** The last verdict: first on the submitted messages, then on the answer. */
export interface ModerationTrace {
  backend: string;
  /** `unavailable`: the backend gave no verdict, so the request was refused. */
  verdict: 'passed' | 'flagged_input' | 'flagged_output' | 'unavailable';
  categories: string[];
}

/** Its worker's trace, besides the times in the request's record. */
export interface RequestTrace {
  moderatedAt?: number;
  moderation?: ModerationTrace;
  /** Set if no provider's failure is the cause. */
  reason?: 'no_provider_routed' | 'worker_died' | 'not_json';
  attempts: AttemptTrace[];
}

/** For operators: the code, and the last failure with the number of its provider call. */
export function failureOf(code: ErrorCode, { reason, attempts }: RequestTrace): string {
  const index = attempts.findLastIndex(({ outcome }) => outcome !== 'ok');
  const failed = attempts[index];
  if (failed === undefined || reason !== undefined) return reason === undefined ? code : `${code}: ${reason}`;
  return `${code}: ${failed.provider} ${failed.model} ${failed.outcome}, attempt ${index + 1}`;
}

/** docs/spec.md#chat-completion. */
export const FINISH_REASONS = ['stop', 'length', 'tool_calls', 'content_filter', 'cancelled', 'error'] as const;
export type FinishReason = (typeof FINISH_REASONS)[number];

/** Per kind: the count that it is a part of, its name in OpenAI's details, and our own. */
export const TOKEN_KINDS = {
  cachedTokens: ['prompt', 'cached_tokens', 'cached'],
  cacheWriteTokens: ['prompt', 'cache_write_tokens', 'cache_write'],
  promptAudioTokens: ['prompt', 'audio_tokens', 'prompt_audio'],
  reasoningTokens: ['completion', 'reasoning_tokens', 'reasoning'],
  completionAudioTokens: ['completion', 'audio_tokens', 'completion_audio'],
} as const;
export type TokenKind = keyof typeof TOKEN_KINDS;
/** Its name in settings and sums. */
export type KindName = (typeof TOKEN_KINDS)[TokenKind][2];
export const KIND_NAMES = Object.keys(TOKEN_KINDS) as TokenKind[];
/** Absent: none. */
export type TokenKinds = Partial<Record<TokenKind, number>>;

export function kindsOf(counts: TokenKinds): TokenKinds {
  const kinds: TokenKinds = {};
  for (const name of KIND_NAMES) if ((counts[name] ?? 0) > 0) kinds[name] = counts[name] ?? 0;
  return kinds;
}

export interface Usage extends TokenKinds {
  promptTokens: number;
  completionTokens: number;
  /** Our own tokenizer counted, because the provider did not say. */
  estimated?: boolean;
}

/** Keeps as much of each kind as its count has room for. */
export function withKinds(usage: Usage, kinds: TokenKinds): Usage {
  const whole: Usage = { promptTokens: usage.promptTokens, completionTokens: usage.completionTokens };
  const left = { prompt: usage.promptTokens, completion: usage.completionTokens };
  for (const name of KIND_NAMES) {
    const [count] = TOKEN_KINDS[name];
    const tokens = Math.min(kinds[name] ?? 0, left[count]);
    if (tokens > 0) whole[name] = tokens;
    left[count] -= tokens;
  }
  return usage.estimated === undefined ? whole : { ...whole, estimated: usage.estimated };
}

/** OpenAI's details of both counts; a count without kinds has none. */
function detailsOf(usage: Usage): Record<string, Record<string, number>> {
  const details: Record<string, Record<string, number>> = {};
  for (const [name, tokens] of Object.entries(kindsOf(usage))) {
    const [count, detail] = TOKEN_KINDS[name as TokenKind];
    details[`${count}_tokens_details`] = { ...details[`${count}_tokens_details`], [detail]: tokens };
  }
  return details;
}

/** OpenAI's form, which tells the kinds of tokens apart. */
export const toDetailedUsage = (usage: Usage) => ({ ...toWireUsage(usage), ...detailsOf(usage) });

export function toWireUsage({ promptTokens, completionTokens }: Usage) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

/** The event that ends a request. An `error` without text before it is an HTTP status at the ingress. */
export interface Terminal {
  finishReason: FinishReason;
  usage: Usage;
  error?: ErrorDetail;
  /** For the look-up of the request; not shown in the stream. */
  trace?: RequestTrace;
}

/** For a request that will not be answered: it was lost, or voided before it was queued. */
export const LOST: Terminal = {
  finishReason: 'error',
  usage: { promptTokens: 0, completionTokens: 0 },
  error: {
    code: 'model_unavailable',
    message: 'The request was lost before its answer was complete; send it again.',
    retryAfterSeconds: 1,
  },
};

/** For an answer that a fault of the service itself cuts short. */
export const FAULT: Terminal = {
  finishReason: 'error',
  usage: { promptTokens: 0, completionTokens: 0 },
  error: toErrorDetail(unexpectedError()),
};

/** A piece of an answer's text, or a delta of another kind, which nothing may cut. */
export type Increment = string | Delta;

/** Tool calls, reasoning, a refusal: what an answer has beside plain text, on `POST /chat/completions` alone. */
export interface Delta {
  line: string;
  /** The words in it, which are counted like text. */
  text: string;
  /** The part of the answer that it continues: `content`, `tool_calls0`, … */
  part: string;
}

/** The form is OpenAI's, of deltas and choices. */
export type Fields = Readonly<Record<string, unknown>>;

/** Their texts say nothing to a reader. */
const SPEECHLESS: ReadonlySet<string> = new Set(['id', 'type', 'data', 'signature', 'format', 'encrypted_content']);

function* textsIn(value: unknown): Iterable<string> {
  if (typeof value === 'string') yield value;
  else if (Array.isArray(value)) for (const item of value) yield* textsIn(item);
  else if (isRecord(value))
    for (const [name, field] of Object.entries(value)) if (!SPEECHLESS.has(name)) yield* textsIn(field);
}

/** Content, arguments and names of tools, reasoning, refusals. */
function deltaText(fields: Fields): string {
  // Some servers say the same in two fields.
  return [...new Set(textsIn(fields))].join('\n');
}

function partOf(fields: Fields): string {
  const [name = '', value] = Object.entries(fields)[0] ?? [];
  const item: unknown = Array.isArray(value) ? value[0] : undefined;
  return isRecord(item) ? `${name}${String(item['index'])}` : name;
}

/** `choice`: fields that stand beside the delta in its choice. */
export function toDelta(fields: Fields, choice?: Fields): Delta {
  const line = JSON.stringify(choice === undefined ? [fields] : [fields, choice]);
  return { line, text: deltaText(fields), part: partOf(fields) };
}

export const wordsOf = (increment: Increment): string => (typeof increment === 'string' ? increment : increment.text);

export function lineText(line: string): string {
  return line.startsWith('[') ? deltaText(fieldsOf(line)[0]) : (JSON.parse(line) as string);
}

export function fieldsOf(line: string): [Fields, Fields?] {
  // Written by `toDelta`, in this repository.
  return JSON.parse(line) as [Fields, Fields?];
}

/** Some servers repeat these with each piece of a tool's arguments; other texts continue. */
function isRepeated(name: string, before: string, later: string): boolean {
  return name === 'id' || name === 'type' || name === 'format' || (name === 'name' && before === later);
}

function joinFields(into: Record<string, unknown>, later: Fields): void {
  for (const [name, value] of Object.entries(later)) {
    const before = into[name];
    if (value === null || name === '__proto__') continue;
    if (Array.isArray(before) && Array.isArray(value)) joinLists(before, value);
    else if (isRecord(before) && isRecord(value)) joinFields(before, value);
    else if (typeof before === 'string' && typeof value === 'string')
      into[name] = isRepeated(name, before, value) ? before : before + value;
    else into[name] = value;
  }
}

/** Items with an `index` continue that of the same one; others follow. */
function joinLists(into: unknown[], later: readonly unknown[]): void {
  for (const item of later) {
    const index = isRecord(item) ? item['index'] : undefined;
    const before = index === undefined ? undefined : into.filter(isRecord).find((each) => each['index'] === index);
    if (before === undefined || !isRecord(item)) into.push(item);
    else joinFields(before, item);
  }
}

function withoutIndex(item: unknown): unknown {
  return isRecord(item) ? Object.fromEntries(Object.entries(item).filter(([name]) => name !== 'index')) : item;
}

/** A whole answer: the fields of its `message` besides the role, and those of its choice. */
export interface MergedAnswer {
  message: { content: string | null; [field: string]: unknown };
  choice: Fields;
}

export function mergeAnswer(lines: readonly string[]): MergedAnswer {
  const merged: Record<string, unknown> = {};
  const choice: Record<string, unknown> = {};
  const texts: string[] = [];
  for (const line of lines) {
    if (!line.startsWith('[')) {
      texts.push(JSON.parse(line) as string);
      continue;
    }
    const [{ content, ...fields }, more = {}] = fieldsOf(line);
    if (typeof content === 'string') texts.push(content);
    joinFields(merged, fields);
    joinFields(choice, more);
  }
  const content = texts.join('');
  const { tool_calls: calls, refusal, function_call: call, audio } = merged;
  const isWordless = content === '' && [calls, refusal, call, audio].some((field) => field !== undefined);
  if (Array.isArray(calls)) merged['tool_calls'] = calls.map(withoutIndex);
  return { message: { content: isWordless ? null : content, ...merged }, choice };
}

/**
 * One entry of a request's stream: increments, then perhaps the end. Its payload has one line for each: text is a JSON
 * string, another delta an array of its fields and perhaps its choice's, the end an object. The first character tells
 * them apart, so a reader forwards an increment without decoding it. Raw line breaks occur in no JSON text.
 */
export interface StreamEntry {
  /** The sequence number of the entry's last event. */
  lastSeq: number;
  deltas: string[];
  terminal?: Terminal;
  /** The claim of the delivery that wrote the entry. Absent in restored answers, and if no delivery wrote the end. */
  writer?: string;
}

/** A final chunk and `[DONE]`; an error ends without `[DONE]` (docs/spec.md#stream-failure). */
export function eventsOf(terminal: Terminal): number {
  return terminal.finishReason === 'error' ? 1 : 2;
}

export function firstSeqOf(entry: StreamEntry): number {
  return entry.lastSeq - entry.deltas.length - (entry.terminal === undefined ? 0 : eventsOf(entry.terminal)) + 1;
}

export function encodeEntry(deltas: readonly Increment[], terminal?: Terminal): string {
  const lines = deltas.map((delta) => (typeof delta === 'string' ? JSON.stringify(delta) : delta.line));
  if (terminal !== undefined) lines.push(JSON.stringify(terminal));
  return lines.join('\n');
}

/** `head`: last sequence number and, perhaps, writer (answers.lua). */
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
