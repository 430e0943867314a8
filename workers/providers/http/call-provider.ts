import { createParser } from 'eventsource-parser';

import { isRecord } from '../../../shared/contracts/parse.ts';
import type { HttpEndpoint } from '../../../shared/infra/http/http-call.ts';
import type { HttpClient } from '../../../shared/infra/http/http-client.ts';
import { ProviderError } from '../provider.ts';
import type { ProviderCall, ProviderSink } from '../provider.ts';
import { errorInAnswer } from './error-reply.ts';
import { notJson } from './parse-json.ts';
import { ANSWER_BYTES_MAX, EnoughError, STREAM_BYTES_MAX, postToProvider, readDocument } from './post-to-provider.ts';
import type { AnswerReader } from './post-to-provider.ts';

/**
 * Text that arrives together is passed on in pieces of at least this many characters: a client still sees the answer
 * grow, and a broken stream can be resumed close to where it broke.
 */
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

/** Passes the data of one event on. Throws a ProviderError where it cannot be read. */
function readEvent(data: string, name: string | undefined, reader: ProviderStreamReader): void {
  if (!data.startsWith('{')) {
    const text = data.trim();
    if (text.startsWith('{')) readEvent(text, name, reader);
    else if (text.includes('\n')) for (const line of text.split('\n')) readEvent(line, name, reader);
    else if (text === '[DONE]') reader.done();
    else if (name === 'error' && text !== '') throw errorInAnswer(text);
    // Anything else is no object, and so neither text nor an end: heartbeats of many kinds.
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
  /** The body has come to its end. */
  end(): void;
}

/** Reads an SSE stream; throws a ProviderError if it is larger than any answer may be. */
function readSse(reader: ProviderStreamReader, onBytes: (() => void) | undefined, onRead: () => void): SseReader {
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
      onBytes?.();
      if (size > STREAM_BYTES_MAX) throw new ProviderError('transient', 'The provider sent an oversized stream');
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
  /** Whether text and finish reason have come, and only usage may be missing. */
  isWhole(): boolean;
}

/** What one protocol says to a server, and how it reads the answer. */
export interface ProviderExchange {
  endpoint: HttpEndpoint;
  body: string;
  /** Reads on to the end of the body when the answer is over, so that the connection can serve another call. */
  openStream(sink: ProviderSink): ProviderStreamReader;
  /** Throws a ProviderError. */
  readComplete(json: string, sink: ProviderSink): void;
}

/** White space, and the bytes of UTF-8's byte order mark. */
const SKIPPED: ReadonlySet<number> = new Set([...Buffer.from(' \t\r\n'), 0xef, 0xbb, 0xbf]);
/** Of `data`, `event`, `id`, `retry` and a comment. No JSON document begins like that. */
const STREAM_BEGINS: ReadonlySet<number> = new Set(Buffer.from('deir:'));
/** Of an object. No stream begins like that. */
const [DOCUMENT_BEGINS] = Buffer.from('{');

/**
 * Some servers answer a call for a stream with a document, as LiteLLM does from its cache, others a call for a document
 * with a stream, and either may be labelled as the other. The first byte that says something tells which it is.
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
  { requestId, traceparent, stream, signal, onHead, onBytes, joinsText = false, readLater, endWaitMs }: ProviderCall,
  { endpoint, body, openStream, readComplete }: ProviderExchange,
  sink: ProviderSink,
): Promise<void> {
  // Not a field of an object: V8 would keep a closure in a field, and the whole call with it, until its next full
  // collection (docs/benchmarks/performance-log.md).
  let end: ((isEnded: boolean) => void) | undefined;
  let hasRefused = false;
  const headers = { 'X-Request-Id': requestId, ...(traceparent === undefined ? {} : { traceparent }) };
  const call = { endpoint, headers, body, signal, readLater, onHead };
  const hear: ProviderSink = (event) => {
    try {
      sink(event);
    } catch (error) {
      hasRefused = true;
      throw error;
    }
  };
  function openSse(): AnswerReader {
    const joined = joinsText ? joinText(hear) : { sink: hear, flush: () => undefined };
    const reader = openStream(joined.sink);
    const sse = readSse(reader, onBytes, joined.flush);
    // What the sink has thrown ends the call, however much of the answer is there.
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
    const document = readDocument(ANSWER_BYTES_MAX);
    end = () => {
      readComplete(document.text(), hear);
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
