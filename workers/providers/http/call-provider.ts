import type { Readable } from 'node:stream';

import { BodyTooLargeError, readText } from '../../../shared/infra/http/http-client.ts';
import type { HttpAnswer, HttpClient } from '../../../shared/infra/http/http-client.ts';
import { ProviderError } from '../provider.ts';
import type { ProviderCall, ProviderEvent } from '../provider.ts';
import { faultOfAnswer, parseError, parseRetryAfter } from './error-reply.ts';
import { createParser } from 'eventsource-parser';

/** The `data` of each event; throws a ProviderError when the stream is larger than any answer may be. */
async function* readSse(body: Readable, bytesMax: number, onBytes?: () => void): AsyncGenerator<string> {
  const events: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => events.push(data) });
  const decoder = new TextDecoder();
  let size = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    size += part.length;
    onBytes?.();
    if (size > bytesMax) throw new ProviderError('transient', 'The provider sent an oversized stream');
    parser.feed(decoder.decode(part, { stream: true }));
    yield* events.splice(0);
  }
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

/** What one protocol says to a server, and how it reads the answer. Both readers throw a ProviderError. */
export interface ProviderExchange {
  url: string;
  headers: Record<string, string>;
  body: string;
  /** Reads the `data` of each event of a stream, to the end of the body, so that the connection can serve another call. */
  readStream(data: AsyncIterable<string>): AsyncIterable<ProviderEvent>;
  readComplete(json: string): Iterable<ProviderEvent>;
}

/** What an answer with an error status says; reads its body. */
export async function refusalOf(answer: HttpAnswer): Promise<ProviderError> {
  const text = await readText(answer.body, ERROR_BYTES_MAX).catch(() => '');
  const error = parseError(text);
  const message = `The provider answered ${answer.status} (${error.word})`;
  return new ProviderError(faultOfAnswer(answer.status, error), message, {
    status: answer.status,
    retryAfterMs: parseRetryAfter(answer.header('retry-after'), Date.now()),
  });
}

/** Network failures and cut bodies are the provider's; an abort is ours and passes through. */
export function toProviderError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof ProviderError) return error;
  if (error instanceof BodyTooLargeError)
    return new ProviderError('transient', 'The provider sent an oversized answer', { cause: error });
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'no code';
  const fault = code === 'UND_ERR_CONNECT_TIMEOUT' ? 'silent' : 'transient';
  return new ProviderError(fault, `The connection to the provider failed (${code})`, { cause: error });
}

/** Some servers answer a call for a stream with one JSON document: LiteLLM from its cache, for one. */
function isDocument(answer: HttpAnswer): boolean {
  return answer.header('content-type')?.trim().toLowerCase().startsWith('application/json') === true;
}

/** One call over HTTP, whatever the protocol: its time is the signal's, its size is limited, its failures are ProviderErrors. */
export async function* callProvider(
  http: HttpClient,
  { requestId, stream, signal, onBytes }: ProviderCall,
  exchange: ProviderExchange,
): AsyncGenerator<ProviderEvent> {
  let body: Readable | undefined;
  try {
    const headers = { 'X-Request-Id': requestId, ...exchange.headers };
    const answer = await http.post(exchange.url, headers, exchange.body, signal);
    if (answer.status !== 200) throw await refusalOf(answer);
    ({ body } = answer);
    if (stream && !isDocument(answer)) yield* exchange.readStream(readSse(body, STREAM_BYTES_MAX, onBytes));
    else yield* exchange.readComplete(await readText(body, ANSWER_BYTES_MAX));
  } catch (error) {
    throw toProviderError(error, signal);
  } finally {
    body?.destroy();
  }
}
