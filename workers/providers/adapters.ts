import type { ProviderKind } from '../../shared/domain/routing/routing.ts';
import type { HttpClient } from '../../shared/infra/http/http-client.ts';
import { createOpenAiAdapter } from './openai/index.ts';
import { ProviderError } from './provider.ts';
import type { ProviderAdapter } from './provider.ts';

/** A kind without an adapter must not look like an outage of the provider. */
const unsupported: ProviderAdapter = {
  generate(provider) {
    throw new ProviderError('refused', `This version has no adapter for providers of kind ${provider.kind}`);
  },
};

/** One adapter per kind. The simulated provider speaks OpenAI's protocol, so that the HTTP path is the real one. */
export function createAdapters(http: HttpClient): Record<ProviderKind, ProviderAdapter> {
  const openai = createOpenAiAdapter(http);
  return { openai, simulated: openai, anthropic: unsupported };
}
