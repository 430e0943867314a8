import type { ProviderKind } from '../../shared/domain/routing/routing.ts';
import type { HttpClient } from '../../shared/infra/http/http-client.ts';
import { createAnthropicAdapter } from './anthropic/index.ts';
import { createOpenAiAdapter } from './openai/index.ts';
import type { ProviderAdapter } from './provider.ts';

/** One adapter per kind. The simulated provider speaks OpenAI's protocol, so that the HTTP path is the real one. */
export function createAdapters(http: HttpClient): Record<ProviderKind, ProviderAdapter> {
  const openai = createOpenAiAdapter(http);
  return { openai, simulated: openai, anthropic: createAnthropicAdapter(http) };
}
