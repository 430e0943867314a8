import type { Readable } from 'node:stream';

import { createParser } from 'eventsource-parser';

import type { Provider } from '../../../shared/domain/routing/routing.ts';
import { BodyTooLargeError, readText } from '../../../shared/infra/http/http-client.ts';
import type { HttpAnswer, HttpClient } from '../../../shared/infra/http/http-client.ts';
import { ProviderError, faultOfStatus } from '../provider.ts';
import type { ProviderAdapter, ProviderCall, ProviderEvent } from '../provider.ts';
import { toChatCompletionBody } from './request.ts';
import { parseCompletion, parseErrorWord, parseRetryAfter } from './response.ts';
import type { Completion } from './response.ts';

/** 16,384 tokens of any script, escaped, with room to spare. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const ERROR_BYTES_MAX = 64 * 1024;

async function errorOf(answer: HttpAnswer): Promise<ProviderError> {
  const text = await readText(answer.body, ERROR_BYTES_MAX).catch(() => '');
  const message = `The provider answered ${answer.status} (${parseErrorWord(text)})`;
  return new ProviderError(faultOfStatus(answer.status), message, {
    status: answer.status,
    retryAfterMs: parseRetryAfter(answer.header('retry-after'), Date.now()),
  });
}

/** The `data` of each event; throws when the stream is larger than any answer may be. */
async function* sseData(body: Readable): AsyncGenerator<string> {
  const events: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => events.push(data) });
  const decoder = new TextDecoder();
  let size = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > ANSWER_BYTES_MAX * 4) throw new ProviderError('transient', 'The provider sent an oversized stream');
    parser.feed(decoder.decode(part, { stream: true }));
    yield* events.splice(0);
  }
}

async function* streamed(body: Readable): AsyncGenerator<ProviderEvent> {
  let finishReason: Completion['finishReason'];
  let usage: Completion['usage'];
  let ended = false;
  // Reading goes on past [DONE] to the end of the body, so that the connection can serve another call.
  for await (const data of sseData(body)) {
    if (ended) continue;
    if (data === '[DONE]') {
      if (finishReason === undefined) break;
      ended = true;
      yield { kind: 'end', finishReason, usage };
      continue;
    }
    const chunk = parseCompletion(data, 'delta');
    if (chunk.text !== '') yield { kind: 'text', text: chunk.text };
    usage = chunk.usage ?? usage;
    finishReason = chunk.finishReason ?? finishReason;
  }
  if (ended) return;
  // A stream that ends without a finish reason was cut: an error, never success (contract.md section 7).
  if (finishReason === undefined)
    throw new ProviderError('transient', 'The provider ended its stream without a finish reason');
  yield { kind: 'end', finishReason, usage };
}

async function* complete(body: Readable): AsyncGenerator<ProviderEvent> {
  const { text, finishReason, usage } = parseCompletion(await readText(body, ANSWER_BYTES_MAX), 'message');
  if (finishReason === undefined)
    throw new ProviderError('transient', 'The provider sent an answer without a finish reason');
  if (text !== '') yield { kind: 'text', text };
  yield { kind: 'end', finishReason, usage };
}

/** Network failures and cut bodies are the provider's; an abort is ours and passes through. */
function toProviderError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof ProviderError) return error;
  if (error instanceof BodyTooLargeError)
    return new ProviderError('transient', 'The provider sent an oversized answer', { cause: error });
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'no code';
  return new ProviderError('transient', `The connection to the provider failed (${code})`, { cause: error });
}

/** Any OpenAI-compatible server; `baseUrl` ends in its version segment, as in `https://host/v1`. */
export function createOpenAiAdapter(http: HttpClient): ProviderAdapter {
  async function* generate(provider: Provider, call: ProviderCall): AsyncGenerator<ProviderEvent> {
    let body: Readable | undefined;
    try {
      const headers: Record<string, string> = { 'X-Request-Id': call.requestId };
      if (provider.apiKey !== undefined) headers['Authorization'] = `Bearer ${provider.apiKey}`;
      const url = `${provider.baseUrl.replace(/\/+$/, '')}/chat/completions`;
      const answer = await http.post(url, headers, toChatCompletionBody(call), call.signal);
      if (answer.status !== 200) throw await errorOf(answer);
      ({ body } = answer);
      yield* call.stream ? streamed(body) : complete(body);
    } catch (error) {
      throw toProviderError(error, call.signal);
    } finally {
      body?.destroy();
    }
  }
  return { generate };
}
