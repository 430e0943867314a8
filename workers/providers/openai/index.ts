import { createEndpoint } from '../../../shared/infra/http/http-call.ts';
import type { HttpClient } from '../../../shared/infra/http/http-client.ts';
import { callProvider, endpointUrl } from '../http/call-provider.ts';
import type { ProviderStreamReader } from '../http/call-provider.ts';
import { ProviderError, perProvider } from '../provider.ts';
import type { ProviderAdapter, ProviderEvent, ProviderSink } from '../provider.ts';
import { openAiHeaders, toChatCompletionBody } from './request.ts';
import { parseCompletion } from './response.ts';
import type { Completion } from './response.ts';

/** The end event of an answer, once all of it has arrived. */
function endOf({ finishReason, usage, model, wantsTool }: Omit<Completion, 'text'>, text: string): ProviderEvent {
  // A stream that ends without a finish reason was cut: an error, never success (docs/spec/contract.md section 7).
  if (finishReason === undefined)
    throw new ProviderError('transient', 'The provider ended its answer without a finish reason');
  if (wantsTool && text === '')
    throw new ProviderError('transient', 'The provider answered with a tool call, although no tool was offered');
  return { kind: 'end', finishReason, usage, model };
}

function openStream(sink: ProviderSink): ProviderStreamReader {
  const end: Omit<Completion, 'text'> = {
    finishReason: undefined,
    usage: undefined,
    model: undefined,
    wantsTool: false,
  };
  let seen = '';
  let ended = false;
  function finish(): void {
    if (ended) return;
    ended = true;
    sink(endOf(end, seen));
  }
  return {
    read(data) {
      if (ended) return;
      if (data === '[DONE]') {
        finish();
        return;
      }
      const chunk = parseCompletion(data, 'delta');
      end.usage = chunk.usage ?? end.usage;
      end.model ??= chunk.model;
      end.finishReason = chunk.finishReason ?? end.finishReason;
      end.wantsTool ||= chunk.wantsTool;
      seen ||= chunk.text;
      if (chunk.text !== '') sink({ kind: 'text', text: chunk.text });
    },
    end: finish,
  };
}

function readComplete(json: string, sink: ProviderSink): void {
  const { text, ...rest } = parseCompletion(json, 'message');
  const end = endOf(rest, text);
  if (text !== '') sink({ kind: 'text', text });
  sink(end);
}

/** Any OpenAI-compatible server; `baseUrl` ends in its version segment, as in `https://host/v1`. */
export function createOpenAiAdapter(http: HttpClient): ProviderAdapter {
  const endpointOf = perProvider((provider) =>
    createEndpoint(endpointUrl(provider.baseUrl, '/chat/completions'), openAiHeaders(provider)),
  );
  return {
    generate: async (provider, call, sink) => {
      const [endpoint, body] = [endpointOf(provider), toChatCompletionBody(provider, call)];
      await callProvider(http, call, { endpoint, body, openStream, readComplete }, sink);
    },
  };
}
