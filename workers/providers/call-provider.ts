import { createParser } from 'eventsource-parser';

import { isRecord } from '../../shared/contracts/parse.ts';
import type { HttpEndpoint } from './http-call.ts';
import type { HttpClient } from './http-client.ts';
import { errorInAnswer, OversizedError, ProviderError } from './provider.ts';
import type { ProviderCall, ProviderEnd, ProviderSink } from './provider.ts';
import { ANSWER_BYTES_MAX, EnoughError, STREAM_BYTES_MAX, postToProvider, readDocument } from './post-to-provider.ts';
import type { AnswerReader } from './post-to-provider.ts';

/** The parser's error message quotes the text, so it is not kept as a cause. */
function notJson(): ProviderError {
  return new ProviderError('transient', 'The provider sent text that is not JSON');
}

/** Throws a transient ProviderError for anything but a JSON object. */
export function parseObject(json: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw notJson();
  }
  if (!isRecord(value)) throw new ProviderError('transient', 'The provider sent JSON that is no object');
  return value;
}

/** The model name a provider reports, if it is plausible: operators see it. */
export function modelName(value: unknown): string | undefined {
  return typeof value === 'string' && /^[\x21-\x7e]{1,256}$/.test(value) ? value : undefined;
}

/** More than any context window holds; a larger count is an error that nobody should be charged for. */
const TOKENS_MAX = 1_000_000_000;
const DIGITS = /^\d{1,10}$/;

/** A missing or implausible number is none; whether a zero can be true depends on the text (`plausibleUsage` in spending.ts). */
export function tokenCount(value: unknown): number | undefined {
  // Some gateways send counts as text.
  const count = typeof value === 'string' && DIGITS.test(value) ? Number(value) : value;
  const isCount = typeof count === 'number' && Number.isInteger(count) && count >= 0 && count <= TOKENS_MAX;
  return isCount ? count : undefined;
}

/** Joined text is passed on from this length, so that an answer still grows and can be resumed near a break. */
const JOINED_CHARACTERS = 64;

/** Joins text that arrives together, until `flush`. The first piece of an answer is not joined. */
function joinText(sink: ProviderSink): { sink: ProviderSink; flush: () => void } {
  let text = '';
  let isFirst = true;
  const flush = () => {
    if (text === '') return;
    const joined = text;
    text = '';
    sink({ kind: 'text', text: joined });
  };
  const join: ProviderSink = (event) => {
    if (event.kind !== 'text') {
      flush();
      sink(event);
      return;
    }
    text += event.text;
    if (!isFirst && text.length < JOINED_CHARACTERS) return;
    isFirst = false;
    flush();
  };
  return { sink: join, flush };
}

function readEvent(data: string, name: string | undefined, reader: ProviderStreamReader): void {
  if (!data.startsWith('{')) {
    const text = data.trim();
    if (text.startsWith('{')) readEvent(text, name, reader);
    else if (text.includes('\n')) for (const line of text.split('\n')) readEvent(line, name, reader);
    else if (text === '[DONE]') reader.done();
    else if (name === 'error' && text !== '') throw errorInAnswer(text);
    // Heartbeats of many kinds are no object, and so neither text nor an end.
    return;
  }
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    // Two events without a blank line between them are joined by a line break.
    if (!data.includes('\n')) throw notJson();
    for (const line of data.split('\n')) readEvent(line, name, reader);
    return;
  }
  if (!isRecord(value)) return;
  if (name === 'error') throw errorInAnswer(value['error'] ?? value);
  reader.read(value);
}

interface SseReader extends AnswerReader {
  end(): void;
}

/** Reads an SSE stream; throws a ProviderError if it is larger than any answer may be. */
function readSse(reader: ProviderStreamReader, onRead: () => void): SseReader {
  const parser = createParser({
    onEvent: ({ data, event }) => {
      readEvent(data, event, reader);
    },
  });
  const decoder = new TextDecoder();
  let size = 0;
  function feed(text: string): void {
    try {
      parser.feed(text);
    } catch (error) {
      // Passes on to the caller the text that came before the fault.
      onRead();
      throw error;
    }
    onRead();
  }
  return {
    take(part) {
      size += part.length;
      if (size > STREAM_BYTES_MAX) throw new OversizedError();
      feed(decoder.decode(part, { stream: true }));
    },
    end() {
      // Some servers leave the last blank line out.
      feed(`${decoder.decode()}\n\n`);
    },
    isWhole: reader.isWhole,
    seemsWhole: reader.isWhole,
  };
}

/** Reads the events of one stream. All but the last throw a ProviderError. */
export interface ProviderStreamReader {
  read(event: Record<string, unknown>): void;
  /** `[DONE]`: the answer has ended; only its usage may follow. */
  done(): void;
  /** No more will be read. */
  end(): void;
  /** True once text and finish reason have come, and only usage may be missing. */
  isWhole(): boolean;
}

export interface ProviderExchange {
  endpoint: HttpEndpoint;
  body: string;
  /** Reads on to the end of the body when the answer is over, so that the connection can serve another call. */
  openStream(sink: ProviderSink, passed: ProviderCall['passed']): ProviderStreamReader;
  /** The largest document. Absent: that of a text. */
  answerBytesMax?: number;
  readComplete(json: string, sink: ProviderSink, passed: ProviderCall['passed']): void;
}

/** White space, and the bytes of UTF-8's byte order mark. */
const SKIPPED: ReadonlySet<number> = new Set([...Buffer.from(' \t\r\n'), 0xef, 0xbb, 0xbf]);
/** Of `data`, `event`, `id`, `retry` and a comment. No JSON document begins like that. */
const STREAM_BEGINS: ReadonlySet<number> = new Set(Buffer.from('deir:'));
/** Of an object. No stream begins like that. */
const [DOCUMENT_BEGINS] = Buffer.from('{');

/**
 * The first byte that says something tells a document from a stream: some servers answer a call for one with the other,
 * as LiteLLM does from its cache, and label either as the other.
 */
function byBeginning(isStream: boolean, open: (isStream: boolean) => AnswerReader): AnswerReader {
  let reader: AnswerReader | undefined;
  return {
    take(part) {
      if (reader === undefined) {
        const first = part.find((byte) => !SKIPPED.has(byte));
        if (first === undefined) return;
        reader = open(STREAM_BEGINS.has(first) || (isStream && first !== DOCUMENT_BEGINS));
      }
      reader.take(part);
    },
    isWhole: () => reader?.isWhole() === true,
    seemsWhole: () => reader?.seemsWhole() === true,
  };
}

/** Makes one call over HTTP, in any protocol. The signal limits its time; sizes are limited here; failures are ProviderErrors. */
export async function callProvider(
  http: HttpClient,
  {
    requestId,
    traceparent,
    stream,
    signal,
    passed,
    onHead,
    onBytes,
    joinsText = false,
    scheduleRead,
    endWaitMs,
  }: ProviderCall,
  { endpoint, body, openStream, readComplete, answerBytesMax = ANSWER_BYTES_MAX }: ProviderExchange,
  sink: ProviderSink,
): Promise<void> {
  // Not a field of an object: V8 would keep a closure in a field, and the whole call with it, until its next full
  // collection (docs/benchmarks/performance-log.md).
  let end: ((isEnded: boolean) => void) | undefined;
  let hasRefused = false;
  const headers = { 'X-Request-Id': requestId, ...(traceparent === undefined ? {} : { traceparent }) };
  const call = { endpoint, headers, body, signal, scheduleRead, onHead, onBytes };
  const onEvent: ProviderSink = (event) => {
    try {
      sink(event);
    } catch (error) {
      hasRefused = true;
      throw error;
    }
  };
  function openSse(): AnswerReader {
    const joined = joinsText ? joinText(onEvent) : { sink: onEvent, flush: () => undefined };
    const reader = openStream(joined.sink, passed);
    const sse = readSse(reader, joined.flush);
    // An error of the sink ends the call, however much of the answer is there.
    const isWhole = () => !hasRefused && reader.isWhole();
    end = (isEnded) => {
      try {
        if (isEnded) sse.end();
      } catch (error) {
        if (!isWhole()) throw error;
      }
      reader.end();
    };
    return { take: sse.take, isWhole, seemsWhole: isWhole };
  }
  function openDocument(): AnswerReader {
    const document = readDocument(answerBytesMax);
    end = () => {
      readComplete(document.text(), onEvent, passed);
    };
    return document;
  }
  const open = (isStream: boolean) => (isStream ? openSse() : openDocument());
  try {
    const isEnded = await postToProvider(http, call, () => byBeginning(stream, open), endWaitMs);
    // Of an empty body.
    if (end === undefined) open(stream);
    end?.(isEnded);
  } catch (error) {
    if (!(error instanceof EnoughError)) throw error;
  }
}

export type FinishReason = ProviderEnd['finishReason'];

/** Words of both protocols, and those that compatible servers have let through or made up, in lower case. */
const WORDS: Readonly<Record<FinishReason | 'broken' | 'none', string>> = {
  stop: 'stop eos eos_token end_turn stop_sequence',
  // Cut off by `max_tokens` or the window: OpenAI's word, Mistral's, Anthropic's, Gemini's, and some gateways'.
  length: 'length model_length max_tokens max_output_tokens model_context_window_exceeded token_limit',
  // OpenAI's, Anthropic's, Z.ai's and Bedrock's, then Gemini's.
  content_filter:
    'content_filter content-filter content_filtered refusal sensitive guardrail_intervened ' +
    'safety recitation prohibited_content blocklist spii',
  // OpenRouter and vLLM, DeepSeek, Z.ai, Bedrock, Gemini, and some gateways.
  broken:
    'error abort insufficient_system_resource network_error malformed_response malformed_function_call ' +
    'timeout cancelled server_error',
  tool_calls: 'tool_calls function_call tool_use',
  // In every chunk but the last.
  none: 'null none finish_reason_unspecified',
};

const MEANINGS: ReadonlyMap<string, keyof typeof WORDS> = new Map([
  ['', 'none'],
  ...Object.entries(WORDS).flatMap(([meaning, words]) =>
    words.split(' ').map((word) => [word, meaning as keyof typeof WORDS] as const),
  ),
]);

/** A word of the provider as a log may show it; anything else may be part of the conversation. */
export function plainWord(word: string): string {
  return /^[\w-]{1,64}$/.test(word) ? word : 'unreadable';
}

/**
 * Returns in one of our words why an answer ended; undefined: it has not. Throws a ProviderError for an answer that was
 * broken off: half an answer is no success (docs/spec.md#routing).
 */
export function readFinishReason(word: unknown): FinishReason | 'unknown' | undefined {
  if (typeof word !== 'string') return undefined;
  const meaning = MEANINGS.get(word) ?? MEANINGS.get(word.trim().toLowerCase()) ?? 'unknown';
  if (meaning === 'broken')
    throw new ProviderError('transient', `The provider broke its answer off (finish reason ${plainWord(word)})`);
  return meaning === 'none' ? undefined : meaning;
}
