import { TEST_MS } from '../../shared/redis/stores/provider-tests.ts';
import type { ProviderTest, ProviderTestResult } from '../../shared/redis/stores/provider-tests.ts';
import type { ProviderKind } from '../../shared/domain/routing.ts';
import type { RoutingRepository } from '../../shared/mongo/routing/routing-repository.ts';
import { ProviderError } from './provider.ts';
import type { ProviderAdapter, ProviderEnd } from './provider.ts';

const MESSAGES = [{ role: 'user', content: 'Answer with the word OK.' }] as const;
/** Enough for a word; some models refuse fewer. */
const MAX_TOKENS = 16;

/** Advice by status; of others the provider's own log knows more. */
const ADVICE: Readonly<Record<number, string>> = {
  400: 'it does not take this request: look at the name of the model',
  401: 'it does not take the `api_key`',
  402: 'its account has no money',
  403: 'the `api_key` may not use this model, or a firewall stands before it',
  404: 'look at `base_url` and at the name of the model',
  429: 'its limits are reached, or its account has no money',
};

/** Quotes no text of the provider, which may have the key in it. Messages of a ProviderError are ours. */
function sentenceOf(error: unknown): string {
  if (!(error instanceof ProviderError)) return `No answer came within ${TEST_MS / 1_000} s.`;
  const { status } = error;
  const advice = status === undefined ? undefined : ADVICE[status];
  return `${error.message}${advice === undefined ? '' : `: ${advice}`}.`;
}

export interface TestProviderDeps {
  repository: RoutingRepository;
  adapters: Readonly<Record<ProviderKind, ProviderAdapter>>;
}

/** Makes one short streamed call, past breaker and capacity, with the settings that stand in MongoDB at this moment. */
export function createTestProvider({ repository, adapters }: TestProviderDeps) {
  return async ({ id, provider: name, model }: ProviderTest): Promise<ProviderTestResult> => {
    const provider = (await repository.load()).providers.get(name);
    const failed = { ok: false, status: null, ms: 0, model: null };
    if (provider === undefined)
      return { ...failed, message: 'The worker cannot decrypt the stored `api_key`; look at its CREDENTIALS_KEY.' };
    const since = performance.now();
    const seen: { status?: number; end?: ProviderEnd } = {};
    const result = (ok: boolean, message: string) => ({
      ok,
      status: seen.status ?? null,
      ms: Math.round(performance.now() - since),
      model: seen.end?.model ?? null,
      message,
    });
    try {
      const call = { requestId: id, messages: MESSAGES, model, maxTokens: MAX_TOKENS, jsonMode: false, stream: true };
      const signal = AbortSignal.timeout(TEST_MS);
      const onHead = ({ status }: { status: number }) => {
        seen.status = status;
      };
      await adapters[provider.kind].generate(provider, { ...call, signal, onHead }, (event) => {
        if (event.kind === 'end') seen.end = event;
      });
      return result(true, 'The provider answers.');
    } catch (error) {
      return result(false, sentenceOf(error));
    }
  };
}
