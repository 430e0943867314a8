import type { HttpClient } from '../../../shared/infra/http/http-client.ts';
import { callProvider, endpointUrl } from '../http/call-provider.ts';
import { ProviderError } from '../provider.ts';
import type { ProviderAdapter, ProviderEvent } from '../provider.ts';
import { cutAtBlank, parseEvent, parseMessage, wholeUsage } from './response.ts';
import { blankStops, anthropicHeaders, toMessagesBody } from './request.ts';
import type { AnthropicFinish, AnthropicUsage } from './response.ts';

async function* readStream(events: AsyncIterable<string>): AsyncGenerator<ProviderEvent> {
  let finishReason: AnthropicFinish | undefined;
  let usage: AnthropicUsage = {};
  let ended = false;
  for await (const data of events) {
    if (ended) continue;
    const event = parseEvent(data);
    if (event.kind === 'text' && event.text !== '') yield event;
    if (event.kind === 'progress') {
      finishReason = event.finishReason ?? finishReason;
      // The figures of a later event are totals, not increments.
      usage = { ...usage, ...event.usage };
    }
    if (event.kind !== 'stop') continue;
    if (finishReason === undefined) break;
    ended = true;
    yield { kind: 'end', finishReason, usage: wholeUsage(usage) };
  }
  if (!ended) throw new ProviderError('transient', 'The provider ended its stream before the end of its answer');
}

function* readComplete(json: string): Generator<ProviderEvent> {
  const { text, finishReason, usage } = parseMessage(json);
  if (text !== '') yield { kind: 'text', text };
  yield { kind: 'end', finishReason, usage };
}

/** Anthropic's Messages API and servers that speak it; `baseUrl` ends in its version segment, as in `https://host/v1`. */
export function createAnthropicAdapter(http: HttpClient): ProviderAdapter {
  return {
    generate(provider, call) {
      const events = callProvider(http, call, {
        url: endpointUrl(provider.baseUrl, '/messages'),
        headers: anthropicHeaders(provider),
        body: toMessagesBody(call),
        readStream,
        readComplete,
      });
      const stops = blankStops(call.sampling);
      return stops.length === 0 ? events : cutAtBlank(events, stops);
    },
  };
}
