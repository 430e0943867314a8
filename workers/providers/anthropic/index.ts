import { createEndpoint } from '../../../shared/infra/http/http-call.ts';
import type { HttpClient } from '../../../shared/infra/http/http-client.ts';
import { callProvider } from '../http/call-provider.ts';
import type { ProviderStreamReader } from '../http/call-provider.ts';
import { parseObject } from '../http/parse-json.ts';
import { endpointUrl } from '../http/post-to-provider.ts';
import { ProviderError, perProvider } from '../provider.ts';
import type { ProviderAdapter, ProviderSink } from '../provider.ts';
import { cutAtBlank, laterUsage, parseEvent, parseMessage, wholeUsage } from './response.ts';
import { blankStops, anthropicHeaders, toMessagesBody } from './request.ts';
import type { FinishReason } from '../http/finish-reason.ts';
import type { AnthropicUsage } from './response.ts';

function cutShort(): ProviderError {
  return new ProviderError('transient', 'The provider ended its stream before the end of its answer');
}

function openStream(sink: ProviderSink): ProviderStreamReader {
  let finishReason: FinishReason | undefined;
  let usage: AnthropicUsage = {};
  let model: string | undefined;
  let ended = false;
  function finish(): void {
    if (ended) return;
    if (finishReason === undefined) throw cutShort();
    ended = true;
    sink({ kind: 'end', finishReason, usage: wholeUsage(usage), model });
  }
  return {
    read(value) {
      if (ended) return;
      const event = parseEvent(value);
      if (event.kind === 'text' && event.text !== '') sink(event);
      if (event.kind === 'progress') {
        finishReason = event.finishReason ?? finishReason;
        model ??= event.model;
        usage = laterUsage(usage, event.usage);
      }
      if (event.kind === 'stop') finish();
    },
    // Compatible servers may say so in place of `message_stop`, or close without either.
    done: finish,
    end: finish,
    isWhole: () => finishReason !== undefined,
  };
}

function readComplete(json: string, sink: ProviderSink): void {
  const { text, ...end } = parseMessage(parseObject(json));
  if (text !== '') sink({ kind: 'text', text });
  sink({ kind: 'end', ...end });
}

/** Anthropic's Messages API and servers that speak it; `baseUrl` ends in its version segment, as in `https://host/v1`. */
export function createAnthropicAdapter(http: HttpClient): ProviderAdapter {
  const endpointOf = perProvider((provider) =>
    createEndpoint(endpointUrl(provider.baseUrl, '/messages'), anthropicHeaders(provider)),
  );
  return {
    generate: async (provider, call, sink) => {
      const stops = blankStops(call.sampling);
      const exchange = { endpoint: endpointOf(provider), body: toMessagesBody(call), openStream, readComplete };
      await callProvider(http, call, exchange, stops.length === 0 ? sink : cutAtBlank(sink, stops));
    },
  };
}
