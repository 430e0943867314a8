import { createParser } from 'eventsource-parser';

import { BodyTooLargeError, NetworkError, collectText } from '../../../shared/infra/http/http-call.ts';
import type { HttpCall, HttpEndpoint, HttpHead, TakePart } from '../../../shared/infra/http/http-call.ts';
import type { HttpClient } from '../../../shared/infra/http/http-client.ts';
import { ProviderError } from '../provider.ts';
import type { ProviderCall, ProviderSink } from '../provider.ts';
import { faultOfAnswer, parseError, parseRetryAfter } from './error-reply.ts';

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

/** Reads the parts of an SSE stream; throws a ProviderError if the stream is larger than any answer may be. */
function readSse(onData: (data: string) => void, onBytes: (() => void) | undefined, onRead: () => void): TakePart {
  const parser = createParser({
    onEvent: ({ data }) => {
      onData(data);
    },
  });
  const decoder = new TextDecoder();
  let size = 0;
  return (part) => {
    size += part.length;
    onBytes?.();
    if (size > STREAM_BYTES_MAX) throw new ProviderError('transient', 'The provider sent an oversized stream');
    try {
      parser.feed(decoder.decode(part, { stream: true }));
    } catch (error) {
      // Passes on to the caller the text that came before the fault.
      onRead();
      throw error;
    }
    onRead();
  };
}

/** Adds a path to a base URL, with or without a slash at its end; a query (Azure's `api-version`) stays behind it. */
export function endpointUrl(baseUrl: string, path: string): string {
  const [base = '', query] = baseUrl.split('?');
  return `${base.replace(/\/+$/, '')}${path}${query === undefined ? '' : `?${query}`}`;
}

/** 16,384 tokens of any script, escaped, with room to spare. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const STREAM_BYTES_MAX = ANSWER_BYTES_MAX * 4;
const ERROR_BYTES_MAX = 64 * 1024;

/** Reads the events of one stream. Both throw a ProviderError. */
export interface ProviderStreamReader {
  /** The `data` of an event. */
  read(data: string): void;
  /** The body has ended. */
  end(): void;
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

/** Thrown by a sink that needs no more: the call ends without a failure. */
export class EnoughError extends Error {
  override readonly name = 'EnoughError';
}

/** What an answer with an error status says. */
function refusalOf({ status, header }: HttpHead, body: string): ProviderError {
  const error = parseError(body);
  return new ProviderError(faultOfAnswer(status, error), `The provider answered ${status} (${error.word})`, {
    status,
    retryAfterMs: parseRetryAfter(header('retry-after'), Date.now()),
  });
}

/** Network failures and cut bodies are the provider's fault. Aborts, and what a sink throws, pass unchanged. */
function toProviderError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof BodyTooLargeError)
    return new ProviderError('transient', 'The provider sent an oversized answer', { cause: error });
  if (!(error instanceof NetworkError)) return error;
  const fault = error.code === 'UND_ERR_CONNECT_TIMEOUT' ? 'silent' : 'transient';
  const code = error.code === '' ? 'no code' : error.code;
  return new ProviderError(fault, `The connection to the provider failed (${code})`, { cause: error });
}

/** Posts, and passes the body of a 200 to `onAnswer`; any other status rejects with the error in the answer. */
export async function postToProvider(
  http: HttpClient,
  call: Omit<HttpCall, 'onHead'>,
  onAnswer: (head: HttpHead) => TakePart,
): Promise<void> {
  const reply = collectText(ERROR_BYTES_MAX);
  const state: { refused?: HttpHead } = {};
  try {
    await http.post({
      ...call,
      onHead(head) {
        if (head.status === 200) return onAnswer(head);
        state.refused = head;
        return reply.take;
      },
    });
  } catch (error) {
    // If the body of a refusal is too large or cut off, the status alone counts.
    if (state.refused !== undefined && !call.signal.aborted) throw refusalOf(state.refused, '');
    throw toProviderError(error, call.signal);
  }
  if (state.refused !== undefined) throw refusalOf(state.refused, reply.text());
}

/** Some servers answer a call for a stream with one JSON document, as LiteLLM does from its cache. */
function isDocument({ header }: HttpHead): boolean {
  return header('content-type')?.trim().toLowerCase().startsWith('application/json') === true;
}

const WHITE_SPACE: ReadonlySet<number> = new Set(Buffer.from(' \t\r\n'));
/** Of `data`, `event` and a comment. No JSON document begins like that. */
const STREAM_BEGINS: ReadonlySet<number> = new Set(Buffer.from('de:'));

/** Others send a stream and call it JSON. The first byte that is no white space tells which of the two it is. */
function byBeginning(asDocument: TakePart, openAsStream: () => TakePart): TakePart {
  let take: TakePart | undefined;
  return (part) => {
    if (take === undefined) {
      const first = part.find((byte) => !WHITE_SPACE.has(byte));
      if (first !== undefined) take = STREAM_BEGINS.has(first) ? openAsStream() : asDocument;
    }
    (take ?? asDocument)(part);
  };
}

/** Makes one call over HTTP, in any protocol. The signal limits its time; sizes are limited here; failures are ProviderErrors. */
export async function callProvider(
  http: HttpClient,
  { requestId, traceparent, stream, signal, onBytes, joinsText = false, readLater }: ProviderCall,
  { endpoint, body, openStream, readComplete }: ProviderExchange,
  sink: ProviderSink,
): Promise<void> {
  // Not a field of an object: V8 would keep a closure in a field, and the whole call with it, until its next full
  // collection (docs/decisions/0072-garbage-that-dies-young.md).
  let end: (() => void) | undefined;
  const headers = { 'X-Request-Id': requestId, ...(traceparent === undefined ? {} : { traceparent }) };
  const call = { endpoint, headers, body, signal, readLater };
  try {
    await postToProvider(http, call, (head) => {
      const openAsStream = () => {
        const joined = joinsText ? joinText(sink) : { sink, flush: () => undefined };
        const reader = openStream(joined.sink);
        end = reader.end;
        return readSse(reader.read, onBytes, joined.flush);
      };
      if (stream && !isDocument(head)) return openAsStream();
      const answer = collectText(ANSWER_BYTES_MAX);
      end = () => {
        readComplete(answer.text(), sink);
      };
      return stream ? byBeginning(answer.take, openAsStream) : answer.take;
    });
    end?.();
  } catch (error) {
    if (!(error instanceof EnoughError)) throw error;
  }
}
