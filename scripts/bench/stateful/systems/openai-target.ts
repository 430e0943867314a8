import type { Target } from '../../rivals/contenders.ts';
import type { Account, Ask, HttpAsk, Missing, StatefulSystem } from '../system.ts';

const NOT_NAMED: Missing = { kind: 'not tried', why: 'no adapter says how (docs/benchmarks/stateful.md)' };

/** The body of OpenAI's protocol. */
export function openAiAsk({ content, stream, maxTokens }: Ask, model: string, more: object = {}): string {
  const limit = maxTokens === undefined ? {} : { max_tokens: maxTokens };
  return JSON.stringify({ model, messages: [{ role: 'user', content }], stream, ...limit, ...more });
}

/** A server of which only the address is known: only what a caller sees is measured. */
export function openAiTarget({ name, url, headers = {}, model = 'sim' }: Target): StatefulSystem {
  return {
    name,
    version: 'unknown',
    urls: [url],
    notes: ['started by somebody else'],
    components: {},
    bookSeconds: 0,
    missing: {
      requestLimits: NOT_NAMED,
      accounts: NOT_NAMED,
      resume: NOT_NAMED,
      batches: NOT_NAMED,
      kill: NOT_NAMED,
    },
    requestIdHeader: 'x-request-id',
    openAccount: (): Promise<Account> => Promise.resolve({ key: '', id: '' }),
    ask: (_account, ask): HttpAsk => ({
      path: '/chat/completions',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: openAiAsk(ask, model),
    }),
  };
}
