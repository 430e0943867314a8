import { createEndpoint } from '../../../shared/infra/http/http-call.ts';
import type { HttpClient } from '../../../shared/infra/http/http-client.ts';
import { callProvider } from '../http/call-provider.ts';
import type { ProviderStreamReader } from '../http/call-provider.ts';
import { parseObject } from '../http/parse-json.ts';
import { endpointUrl } from '../http/post-to-provider.ts';
import { ProviderError, perProvider } from '../provider.ts';
import type { ProviderAdapter, ProviderEvent, ProviderSink } from '../provider.ts';
import { openAiHeaders, toChatCompletionBody } from './request.ts';
import { parseCompletion } from './response.ts';
import type { Completion } from './response.ts';

/** The end event of an answer, once all of it has arrived. */
function endOf(answer: Omit<Completion, 'text'>, text: string): ProviderEvent {
  const { finishReason, usage, model, wantsTool, isRefusal, unknownReason } = answer;
  // A stream that ends without a finish reason was cut: an error, never success (docs/spec.md#routing).
  if (finishReason === undefined)
    throw new ProviderError('transient', 'The provider ended its answer without a finish reason');
  if (wantsTool && text === '')
    throw new ProviderError('transient', 'The provider answered with a tool call, although no tool was offered');
  const isRefused = isRefusal && finishReason === 'stop';
  return {
    kind: 'end',
    finishReason: isRefused ? 'content_filter' : finishReason,
    usage,
    model,
    ...(unknownReason === undefined ? {} : { unknownReason }),
  };
}

function openStream(sink: ProviderSink): ProviderStreamReader {
  const end: Omit<Completion, 'text'> = {
    finishReason: undefined,
    usage: undefined,
    model: undefined,
    wantsTool: false,
    isRefusal: false,
    unknownReason: undefined,
  };
  let seen = '';
  /** Text has followed a finish reason: this server gives one with every chunk. */
  let isEarly = false;
  let isDone = false;
  let ended = false;
  function finish(): void {
    if (ended) return;
    const event = endOf(end, seen);
    ended = true;
    sink(event);
  }
  function hear(text: string): void {
    isEarly ||= end.finishReason !== undefined;
    seen ||= text;
    sink({ kind: 'text', text });
  }
  return {
    read(event) {
      if (ended) return;
      const chunk = parseCompletion(event, 'delta');
      // Whatever the sink throws, the text of this chunk has not been taken, so the answer is not whole.
      if (chunk.text !== '') hear(chunk.text);
      end.usage = chunk.usage ?? end.usage;
      end.model ??= chunk.model;
      end.finishReason = chunk.finishReason ?? end.finishReason;
      end.wantsTool ||= chunk.wantsTool;
      end.isRefusal ||= chunk.isRefusal;
      end.unknownReason ??= chunk.unknownReason;
      if (isDone && end.usage !== undefined) finish();
    },
    done() {
      isDone = true;
      // Some servers send their count behind it.
      if (end.usage !== undefined || end.finishReason === undefined) finish();
    },
    end: finish,
    isWhole: () => ended || (end.finishReason !== undefined && (isDone || !isEarly)),
  };
}

function readComplete(json: string, sink: ProviderSink): void {
  const { text, ...rest } = parseCompletion(parseObject(json), 'message');
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
