import { afterEach, expect, it } from '@jest/globals';

import { chatOf, postChat } from '../../support/chat.ts';
import { useService, useTenant } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

const service = useService({ workers: 0 });
const tenant = useTenant(service);
/** Nobody listens there, and nobody is to be called. */
const BASE_URL = 'http://127.0.0.1:9/v1';
const MESSAGE = 'The stored API key of a provider cannot be decrypted; the provider is left out until it can.';

const targetOf = (provider: string, priority: number) => ({
  provider,
  model: 'sim?chunks=1',
  priority,
  context_window: 128_000,
});
async function spoil(provider: string, encryptedApiKey: string): Promise<void> {
  await service.models.providers.updateOne({ _id: provider }, { encryptedApiKey });
}
const ask = () => postChat(service.app, tenant.key, chatOf('Hello'));
const linesAbout = (provider: string) =>
  service.log.lines.filter(({ message, fields }) => message === MESSAGE && fields['provider'] === provider);
afterEach(async () => {
  await service.resetBreakers();
});

it('one provider whose API key cannot be decrypted leaves the others in use, at the start and later', async () => {
  await service.setProvider({ kind: 'openai', base_url: BASE_URL, api_key: 'sk-first' }, 'first');
  await service.setTargets('mobius', [targetOf('first', 1), targetOf('simulated', 2)]);
  await spoil('first', 'v1:00000000:AAAA');
  const worker = await service.startWorker();
  expect((await ask()).status).toBe(200);
  expect(linesAbout('first').length).toBeGreaterThan(0);
  expect(await worker.metrics()).toMatch(/^parley_unreadable_providers\{.*\} 1$/m);

  await service.setProvider({ kind: 'openai', base_url: BASE_URL, api_key: 'sk-second' }, 'second');
  await spoil('second', 'not a text of ours');
  await waitFor(
    async () => ((await worker.metrics()).match(/^parley_unreadable_providers\{.*\} 2$/m) ? true : undefined),
    'both are left out',
  );
  expect((await ask()).status).toBe(200);
  // Once in each process: the ingress reads routes as well.
  expect(linesAbout('first').length).toBeLessThanOrEqual(2);

  await service.setProvider({ kind: 'openai', base_url: BASE_URL, api_key: 'sk-new' }, 'first');
  await waitFor(
    async () => ((await worker.metrics()).match(/^parley_unreadable_providers\{.*\} 1$/m) ? true : undefined),
    'the first is back',
  );
  await worker.close();
}, 60_000);
