import type { Task } from '../../shared/contracts/chat-request.ts';
import { fieldsOf, firstSeqOf, mergeAnswer, toDetailedUsage, toWireUsage } from '../../shared/contracts/events.ts';
import type { StreamEntry, Terminal, Usage } from '../../shared/contracts/events.ts';
import { wellFormedJson } from '../../shared/contracts/parse.ts';
import { toErrorDetail, toErrorObject } from '../../shared/errors/error-body.ts';
import type { ErrorDetail, ErrorObject } from '../../shared/errors/error-body.ts';
import { ServiceError, outOfTime } from '../../shared/errors/service-error.ts';
import type { QueuePlace } from '../../shared/requests/record-store.ts';

/** The parts of a request that its answer contains. */
export interface AnswerHead {
  requestId: string;
  /** Unix seconds. */
  created: number;
  model: string;
  /** The kind of answer. Absent: text. */
  kind?: Task['kind'];
  /** The caller's own object as JSON text. */
  metadataJson?: string;
}

/** The head of a request's answer: the same on every ingress and at any time. */
export function answerHead(request: {
  requestId: string;
  acceptedAt: number;
  tier: string;
  /** The published name under which it was asked for. */
  name?: string | undefined;
  metadataJson?: string | undefined;
}): AnswerHead {
  const { requestId, acceptedAt, tier, name, metadataJson } = request;
  const kind = tier === 'embedding' || tier === 'moderation' ? ({ kind: tier } as const) : {};
  const head = { requestId, created: Math.floor(acceptedAt / 1000), model: name ?? tier, ...kind };
  return metadataJson === undefined ? head : { ...head, metadataJson };
}

/** Fields of an answer in the form of OpenAI's API, as `POST /chat/completions` gives it. */
export interface OpenAiForm {
  usage: 'last chunk' | 'own chunk' | 'none';
}

function headOf({ requestId, created, model }: AnswerHead, object: string): string {
  return `{"id":"${requestId}","object":"${object}","created":${created},"model":"${model}"`;
}

function metadataOf({ metadataJson }: AnswerHead): string {
  return metadataJson === undefined ? '' : `,"metadata":${metadataJson}`;
}

const CANCELLED: ErrorDetail = { code: 'conflict', message: 'The request was cancelled; its text ends here.' };

/**
 * OpenAI's clients know five finish reasons, and some throw at another word. They raise an `error` beside the chunk
 * (docs/spec.md#openais-client).
 */
function endOf(
  { finishReason, error }: Terminal,
  form: OpenAiForm | undefined,
): Pick<Terminal, 'finishReason' | 'error'> {
  const isKnown = form === undefined || (finishReason !== 'cancelled' && finishReason !== 'error');
  const told = isKnown ? error : (error ?? CANCELLED);
  return { finishReason: isKnown ? finishReason : 'stop', ...(told === undefined ? {} : { error: told }) };
}

/** The details of the counts are of OpenAI's form only. */
function usageText(usage: Usage, form: OpenAiForm | undefined): string {
  return JSON.stringify(form === undefined ? toWireUsage(usage) : toDetailedUsage(usage));
}

function errorFieldOf(error: ErrorDetail | undefined, { requestId }: AnswerHead): string {
  return error === undefined ? '' : `,"error":${JSON.stringify(toErrorObject(error, requestId))}`;
}

/** The inside of another delta than text, and the fields of its choice behind it, from its line `[{…}]` or `[{…},{…}]`. */
function otherDelta(line: string, isFirst: boolean): string {
  const [fields, choice] = fieldsOf(line);
  const delta = JSON.stringify(isFirst ? { role: 'assistant', ...fields } : fields).slice(1);
  return choice === undefined ? delta : `${delta},${JSON.stringify(choice).slice(1, -1)}`;
}

/**
 * Stands where `[DONE]` would. A reader that takes an event with choices for a chunk, as Vercel's AI SDK does, drops
 * the error beside them and would take half an answer for a whole one.
 */
function failureEvent({ error }: Terminal, requestId: string, form: OpenAiForm | undefined): string {
  return form === undefined || error === undefined
    ? ''
    : `data: {"error":${JSON.stringify(toErrorObject(error, requestId))}}\n\n`;
}

/**
 * Writes the events of a stream as SSE (docs/spec.md#stream). The text depends only on head, form, sequence number and
 * entry, so every ingress writes the same bytes. Lines of text are not decoded. OpenAI's API numbers no events, and
 * readers that cut `data: ` off a block cannot read one with an `id:`.
 */
export function createSseWriter(head: AnswerHead, form?: OpenAiForm) {
  const start = `data: ${headOf(head, 'chat.completion.chunk')},"choices":[{"index":0,"delta":{`;
  const usagePlace = form?.usage ?? 'last chunk';
  /** OpenAI's chunks say that the usage is still to come. */
  const noUsage = usagePlace === 'own chunk' ? ',"usage":null' : '';
  const event = (seq: number, data: string) => (form === undefined ? `id: ${seq}\n${data}\n\n` : `${data}\n\n`);

  function delta(seq: number, line: string): string {
    const role = seq === 1 ? '"role":"assistant",' : '';
    const fields = line.startsWith('[') ? otherDelta(line, seq === 1) : `${role}"content":${line}}`;
    return event(seq, `${start}${fields},"finish_reason":null}]${noUsage}}`);
  }

  const usageOf = ({ usage }: Terminal) => `,"usage":${usageText(usage, form)}`;

  function finalChunk(seq: number, terminal: Terminal): string {
    const { finishReason, error } = endOf(terminal, form);
    // Behind a failure there is no further chunk.
    const isLast = usagePlace === 'last chunk' || (usagePlace === 'own chunk' && terminal.finishReason === 'error');
    const end = `${isLast ? usageOf(terminal) : noUsage}${metadataOf(head)}${errorFieldOf(error, head)}}`;
    // Readers of OpenAI's form look for the role in the first chunk, also of an answer that says nothing.
    const role = form !== undefined && seq === 1 ? '"role":"assistant","content":""' : '';
    return event(seq, `${start}${role}},"finish_reason":"${finishReason}"}]${end}`);
  }

  /** `[DONE]`, and before it the chunk of the usage, which has no number of its own. */
  function done(seq: number, terminal: Terminal): string {
    const usage =
      usagePlace === 'own chunk'
        ? `data: ${headOf(head, 'chat.completion.chunk')},"choices":[]${usageOf(terminal)}}\n\n`
        : '';
    return usage + event(seq, 'data: [DONE]');
  }

  return {
    /** A stream ends with the final chunk and `[DONE]`, which a failed one lacks (docs/spec.md#stream-failure). */
    events(entry: StreamEntry, fromSeq: number): string {
      let seq = firstSeqOf(entry);
      let text = '';
      for (const line of entry.deltas) {
        if (seq >= fromSeq) text += delta(seq, line);
        seq += 1;
      }
      const { terminal } = entry;
      if (terminal === undefined) return text;
      if (seq >= fromSeq) text += finalChunk(seq, terminal);
      return (
        text +
        (terminal.finishReason === 'error' ? failureEvent(terminal, head.requestId, form) : done(seq + 1, terminal))
      );
    },
  };
}

/**
 * An SSE comment, which is no event and has no number. It has no blank line of its own: once an `id:` has been seen,
 * the `openai` and `httpx-sse` packages for Python take each blank line for an event, and fail at its empty data.
 */
export const SSE_PING = ': ping\n';

/** A comment like `SSE_PING`. */
export function ssePlace({ position, waitMs }: QueuePlace): string {
  return `: queue position=${position} wait=${toWaitSeconds(waitMs)}\n`;
}

/** A comment like `SSE_PING`, the last line of a stream that is cut. `seq`: the number of its last event. */
export function sseLastWord(requestId: string, seq: number): string {
  return `: this server restarts; go on with GET /platform/v1/chat/stream/${requestId}?starting_after=${seq}\n`;
}

/** Whole seconds as callers see them; at least 1. */
export function toWaitSeconds(waitMs: number): number {
  return Math.max(1, Math.round(waitMs / 1000));
}

/** Printed in one turn of the event loop: as numbers, some milliseconds. */
const PIECE_BYTES = 256 * 1024;

/** The numbers of a vector, as exact as 32 bits hold them. */
function numbersOf(base64: string): string {
  const bytes = Buffer.from(base64, 'base64');
  return JSON.stringify(Array.from({ length: bytes.length / 4 }, (_none, index) => bytes.readFloatLE(index * 4)));
}

/**
 * The JSON text of an answer of vectors, in pieces between which other work of the process may run. The answer's text says
 * how they are to be written, then each of them as base64 (`embed` in workers/providers/provider.ts).
 */
function* embeddingPieces(
  { model }: AnswerHead,
  lines: readonly string[],
  { usage: { promptTokens } }: Terminal,
): Generator<string> {
  const [encoding, ...vectors] = lines
    .map((line) => line.slice(1, -1))
    .join('')
    .split(' ');
  let piece = '{"object":"list","data":[';
  for (const [index, vector] of vectors.entries()) {
    const embedding = encoding === 'float' ? numbersOf(vector) : `"${vector}"`;
    piece += `${index === 0 ? '' : ','}{"object":"embedding","index":${index},"embedding":${embedding}}`;
    if (piece.length < PIECE_BYTES) continue;
    yield piece;
    piece = '';
  }
  yield `${piece}],"model":"${model}","usage":{"prompt_tokens":${promptTokens},"total_tokens":${promptTokens}}}`;
}

/** Verdicts are JSON in the answer's text, but for the id of their request. */
function moderationAnswer({ requestId }: AnswerHead, lines: readonly string[]): string {
  const text = lines.map((line) => String(JSON.parse(line))).join('');
  return `{"id":"${requestId}",${text.slice(1)}`;
}

/** The fields of a complete answer's choice before its end. Lines of plain text are joined without decoding them. */
function saidOf(lines: readonly string[]): string {
  if (!lines.some((line) => line.startsWith('[')))
    return `"message":{"role":"assistant","content":"${lines.map((line) => line.slice(1, -1)).join('')}"}`;
  const { message, choice } = mergeAnswer(lines);
  return wellFormedJson({ message: { role: 'assistant', ...message }, ...choice }).slice(1, -1);
}

/** JSON as text; a very long one in pieces. */
export type JsonText = string | Iterable<string>;

/** A complete answer (docs/spec.md#chat-completion), from the lines of its increments. */
export function completeAnswer(
  head: AnswerHead,
  lines: readonly string[],
  terminal: Terminal,
  form?: OpenAiForm,
): JsonText {
  if (head.kind === 'embedding') {
    const pieces = embeddingPieces(head, lines, terminal);
    return lines.reduce((sum, line) => sum + line.length, 0) > PIECE_BYTES ? pieces : [...pieces].join('');
  }
  if (head.kind === 'moderation') return moderationAnswer(head, lines);
  const { finishReason, error } = endOf(terminal, form);
  const choice = `{"index":0,${saidOf(lines)},"finish_reason":"${finishReason}"}`;
  const usage = usageText(terminal.usage, form);
  return `${headOf(head, 'chat.completion')},"choices":[${choice}],"usage":${usage}${metadataOf(head)}${errorFieldOf(error, head)}}`;
}

/** A worker, or else the sweep, ends a request at its deadline; failing both, the relay gives up this much later. */
export const DEADLINE_MARGIN_MS = 20_000;

/** The last event of a stream that has begun, but that nobody has ended in time. */
export function timedOut(): Terminal {
  const usage = { promptTokens: 0, completionTokens: 0 };
  return { finishReason: 'error', usage, error: toErrorDetail(outOfTime()) };
}

/** The HTTP error for a request that ended without an answer; undefined if there is an answer to send. */
export function errorOf(terminal: Terminal, hasText: boolean): ServiceError | undefined {
  const { error, finishReason } = terminal;
  if (error !== undefined) {
    return new ServiceError(error.code, error.message, error);
  }
  if (finishReason === 'cancelled' && !hasText)
    return new ServiceError('conflict', 'The request was cancelled before it had an answer.', { isFinal: true });
  return undefined;
}

/**
 * The error of a stream that broke off, for a caller that asks for a complete answer under its Idempotency-Key. The key
 * stands for the text that was sent, so no retry under it can end differently
 * (docs/decisions/0008-ambiguous-admissions.md).
 */
export function brokenOff(error: ServiceError): ServiceError {
  const more = 'The stream under this Idempotency-Key broke off amid its answer; send a new key.';
  return new ServiceError(error.code, `${error.message} ${more}`, { ...toErrorDetail(error), isFinal: true });
}

/** The end of a request, as its look-up shows it: an answer or an error. */
export type EndedAs = { responseJson: JsonText } | { error: ErrorObject };

function* piecesAround(before: string, pieces: Iterable<string>, after: string): Generator<string> {
  yield before;
  yield* pieces;
  yield after;
}

export function around(before: string, json: JsonText, after: string): JsonText {
  return typeof json === 'string' ? before + json + after : piecesAround(before, json, after);
}

/** `entries`: the whole stream so far. Undefined: it has not ended. */
export function outcomeOf(head: AnswerHead, entries: readonly StreamEntry[]): EndedAs | undefined {
  const terminal = entries.at(-1)?.terminal;
  if (terminal === undefined) return undefined;
  const lines = entries.flatMap((entry) => entry.deltas);
  const error = errorOf(terminal, lines.length > 0);
  return error === undefined
    ? { responseJson: completeAnswer(head, lines, terminal) }
    : { error: toErrorObject(toErrorDetail(error), head.requestId) };
}
