import type { Provider, ProviderKind } from '../../shared/domain/routing/routing.ts';
import type { ProviderCall, ProviderEvent } from '../../workers/providers/provider.ts';

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
  events: AsyncIterable<ProviderEvent>,
): Promise<{ events: ProviderEvent[]; failure?: unknown }> {
  const read: ProviderEvent[] = [];
  try {
    for await (const event of events) read.push(event);
    return { events: read };
  } catch (failure) {
    return { events: read, failure };
  }
}
