import { beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, postChat, requestIdOf } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useService, useTenant } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

const service = useService();
const tenant = useTenant(service);
const other = useTenant(service);

interface Summary {
  id: string;
  status: string;
  error_code: string | null;
}
const list = async (key: string, query = '') => {
  const { body } = await apiOf(service, key)('get', `/requests${query}`);
  return body.data as Summary[];
};

describe('GET /requests', () => {
  let answered: string;
  let refused: string;
  beforeAll(async () => {
    answered = requestIdOf(await postChat(service.app, tenant.key, chatOf('A secret question')));
    refused = requestIdOf(await postChat(service.app, tenant.key, { messages: [] }));
    await postChat(service.app, other.key, chatOf('Hi'));
    const isListed = async (key: string, rows: number) => ((await list(key)).length >= rows ? true : undefined);
    await waitFor(() => isListed(tenant.key, 2), 'both requests');
    await waitFor(() => isListed(other.key, 1), "the other tenant's");
  });

  it('lists what was answered and what was refused, of this tenant alone', async () => {
    const rows = await list(tenant.key);

    expect(rows.map(({ id }) => id).toSorted()).toEqual([answered, refused].toSorted());
    expect(rows.find(({ id }) => id === answered)).toMatchObject({
      status: 'completed',
      endpoint: 'chat',
      model: 'mobius',
    });
    expect(rows.find(({ id }) => id === refused)).toMatchObject({ status: 'refused', error_code: 'invalid_request' });
  });

  it('has neither text nor what only operators read', async () => {
    const text = JSON.stringify(await list(tenant.key));

    expect(text).not.toMatch(/secret|provider|reason":"(?!stop)|cost/);
  });

  it.each([
    ['?status=completed', () => [answered]],
    ['?error_code=invalid_request', () => [refused]],
    ['?model=oloid', () => []],
    ['?end_time=1', () => []],
    ['?start_time=1&status=refused', () => [refused]],
  ] as const)('%s narrows it', async (query, ids) => {
    expect((await list(tenant.key, query)).map(({ id }) => id)).toEqual(ids());
  });

  it('is empty for a key of the other mode', async () => {
    const { value } = await makeKey(apiOf(service, tenant.key), { mode: 'test' });

    expect(await list(value)).toEqual([]);
  });

  it('says which parameter is wrong', async () => {
    const response = await apiOf(service, tenant.key)('get', '/requests?status=done');

    expect(refusalOf(response)).toMatchObject({ status: 400, code: 'invalid_request', param: 'status' });
  });
});
