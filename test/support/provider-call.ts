import type { Provider, ProviderKind } from '../../shared/domain/routing.ts';
import type { ProviderCall, ProviderEvent, ProviderSink } from '../../workers/providers/provider.ts';

export function providerOf(kind: ProviderKind, baseUrl: string, apiKey = 'sk-secret'): Provider {
  return { name: 'p', kind, baseUrl, apiKey, timeoutMs: 1_000, firstTokenTimeoutMs: 1_000, maxRetries: 0 };
}

export function callOf(more: Partial<ProviderCall> = {}): ProviderCall {
  return {
    requestId: 'req_1',
    messages: [{ role: 'user', content: 'Hello' }],
    model: 'm',
    maxTokens: 10,
    jsonMode: false,
    stream: true,
    signal: new AbortController().signal,
    ...more,
  };
}

/** Everything that a call gave, and what it failed with. */
export async function readEvents(
  generate: (sink: ProviderSink) => Promise<void>,
): Promise<{ events: ProviderEvent[]; failure?: unknown }> {
  const events: ProviderEvent[] = [];
  try {
    await generate((event) => events.push(event));
    return { events };
  } catch (failure) {
    return { events, failure };
  }
}
