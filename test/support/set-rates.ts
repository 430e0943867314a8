import { chatOf, postChat, waitFor } from './chat.ts';
import type { TestService } from './service.ts';

/** Credits a token. */
interface TokenRates {
  prompt: number;
  completion: number;
}

/** Changes the prices of `mobius`, and waits until requests are admitted at them. Returns what they were before. */
export async function setRates(service: TestService, rates: TokenRates): Promise<TokenRates> {
  const before = (await service.admin('get', '/tiers/mobius')).body as { targets: object[]; rates: TokenRates };
  const { status, text } = await service.admin('put', '/tiers/mobius', { rates, targets: before.targets });
  if (status !== 200) throw new Error(`The prices were refused: ${text}`);
  const { key } = await service.startTenant();
  const admitted = `${rates.prompt * 1_000_000} ${rates.completion * 1_000_000} `;
  await waitFor(async () => {
    const { body } = await postChat(service.app, key, chatOf('What does it cost?')).set('Prefer', 'respond-async');
    const known = await service.redis.hget(service.keyspace.shard(0).record(String(body.id)), 'rates');
    return known?.startsWith(admitted) === true ? true : undefined;
  }, 'the prices');
  return before.rates;
}
