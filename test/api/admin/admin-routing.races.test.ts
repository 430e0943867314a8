import { describe, expect, it } from '@jest/globals';

import { useRoutingAdmin } from '../../support/use-service.ts';

const admin = useRoutingAdmin();

const PROVIDER = { kind: 'openai', base_url: 'http://127.0.0.1:8090/v1' };
const RATES = { prompt: 1, completion: 1 };
const putProvider = (name: string) => admin.call('put', `/admin/v1/providers/${name}`, PROVIDER);
const putTier = (provider: string, rates: object = RATES) =>
  admin.call('put', '/admin/v1/tiers/mobius', { rates, targets: [{ provider, model: 'm' }] });

describe('administrators at the same time', () => {
  it('create a provider once', async () => {
    const responses = await Promise.all(Array.from({ length: 6 }, () => putProvider('sim')));
    expect(responses.map((response) => response.status).toSorted()).toEqual([200, 200, 200, 200, 200, 201]);
  });

  it('lose no version of a tier', async () => {
    await putProvider('sim');
    const responses = await Promise.all(
      Array.from({ length: 8 }, (_, prompt) => putTier('sim', { prompt, completion: 1 })),
    );
    expect(responses.map((response) => response.body.version as number).toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const { body } = await admin.call('get', '/admin/v1/tiers/mobius/versions');
    const prompts = (body.data as { rates: { prompt: number } }[]).map((version) => version.rates.prompt);
    expect(prompts.toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect((await admin.call('get', '/admin/v1/tiers/mobius')).body).toMatchObject({ version: 8 });
  });

  it('leave no tier that leads to a provider which is gone', async () => {
    await putProvider('stays');
    for (let round = 0; round < 8; round += 1) {
      await putProvider('goes');
      await putTier('stays');
      const [put, deleted] = await Promise.all([putTier('goes'), admin.call('delete', '/admin/v1/providers/goes')]);
      expect([
        [200, 409],
        [400, 200],
      ]).toContainEqual([put.status, deleted.status]);
    }
  });
});
