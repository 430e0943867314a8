import type { Provider } from '../../../shared/domain/routing/routing.ts';
import type { HttpClient } from '../../../shared/infra/http/http-client.ts';
import { callProvider, endpointUrl } from '../http/call-provider.ts';
import { ProviderError } from '../provider.ts';
import type { ProviderAdapter, ProviderEvent } from '../provider.ts';
import { openAiHeaders, toChatCompletionBody } from './request.ts';
import { parseCompletion } from './response.ts';
import type { Completion } from './response.ts';

/** The end of an answer, once all of it is there. */
function endOf({ finishReason, usage, wantsTool }: Omit<Completion, 'text'>, text: string): ProviderEvent {
  // A stream that ends without a finish reason was cut: an error, never success (docs/spec/contract.md section 7).
  if (finishReason === undefined)
    throw new ProviderError('transient', 'The provider ended its answer without a finish reason');
  if (wantsTool && text === '')
    throw new ProviderError('transient', 'The provider answered with a tool call, although no tool was offered');
  return { kind: 'end', finishReason, usage };
}

async function* readStream(events: AsyncIterable<string>): AsyncGenerator<ProviderEvent> {
  const end: Omit<Completion, 'text'> = { finishReason: undefined, usage: undefined, wantsTool: false };
  let seen = '';
  let ended = false;
  for await (const data of events) {
    if (ended) continue;
    if (data === '[DONE]') {
      yield endOf(end, seen);
      ended = true;
      continue;
    }
    const chunk = parseCompletion(data, 'delta');
    if (chunk.text !== '') yield { kind: 'text', text: chunk.text };
    seen ||= chunk.text;
    end.usage = chunk.usage ?? end.usage;
    end.finishReason = chunk.finishReason ?? end.finishReason;
    end.wantsTool ||= chunk.wantsTool;
  }
  if (!ended) yield endOf(end, seen);
}

function* readComplete(json: string): Generator<ProviderEvent> {
  const { text, ...rest } = parseCompletion(json, 'message');
  const end = endOf(rest, text);
  if (text !== '') yield { kind: 'text', text };
  yield end;
}

/** Any OpenAI-compatible server; `baseUrl` ends in its version segment, as in `https://host/v1`. */
export function createOpenAiAdapter(http: HttpClient): ProviderAdapter {
  return {
    generate: (provider: Provider, call) =>
      callProvider(http, call, {
        url: endpointUrl(provider.baseUrl, '/chat/completions'),
        headers: openAiHeaders(provider),
        body: toChatCompletionBody(provider, call),
        readStream,
        readComplete,
      }),
  };
}
