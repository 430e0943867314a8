import { describe, expect, it } from '@jest/globals';

import { createKey, createKeyRepository } from '../../../shared/mongo/tenants/key-repository.ts';
import { chatOf, postChat } from '../../support/chat.ts';
import { findEverywhere } from '../../support/search-stores.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

const service = useService();
type Body = Record<string, unknown>;

async function startCustomer(entity_id = 'ada') {
  const customer = await service.startTenant({ credits: 1_000_000 });
  const body = { ...chatOf('My name is Ada'), entity_id };
  expect((await postChat(service.app, customer.key, body)).status).toBe(200);
  return { ...customer, path: `/tenants/${customer.tenantId}` };
}

const completed = (location: string) =>
  waitFor(async () => {
    const { body } = await service.admin('get', location.replace('/admin/v1', ''));
    return (body as Body)['status'] === 'completed' ? (body as Body) : undefined;
  }, `${location} to complete`);

const statusOf = async (key: string) => (await apiOf(service, key)('get', '/billing')).status;

describe('a suspended tenant', () => {
  it('is exported by the administration, once for a key, and the archive can be downloaded', async () => {
    const { path } = await startCustomer();
    await service.admin('patch', path, { status: 'suspended' });
    const ask = () => service.admin('post', `${path}/exports`, { scope: 'tenant' }, { 'Idempotency-Key': path });
    const [first, again] = [await ask(), await ask()];
    expect([first.status, (again.body as Body)['id']]).toEqual([202, (first.body as Body)['id']]);

    await completed(String(first.headers['location']));
    const { id } = first.body as { id: string };
    const archive = await service.admin('get', `${path}/exports/${id}/download`);
    expect([archive.status, archive.headers['content-type']]).toEqual([200, 'application/zip']);
    const { body: log } = await service.admin('get', '/audit_log?limit=5');
    expect(JSON.stringify(log)).toContain(`${path}/exports`);
  });

  it('has an entity deleted by the administration', async () => {
    const { path, tenantId } = await startCustomer('lovelace');
    await service.admin('patch', path, { status: 'suspended' });
    const subject = { scope: 'entity', entity_id: 'lovelace' };
    await completed(String((await service.admin('post', `${path}/exports`, subject)).headers['location']));
    const body = { ...subject, reason: 'By lovelace' };
    const ask = () => service.admin('post', `${path}/deletions`, body, { 'Idempotency-Key': 'once' });
    const answer = await ask();
    expect(answer.status).toBe(202);
    expect((await completed(String(answer.headers['location'])))['report']).toMatchObject({ entity: 1, history: 2 });
    expect(await service.models.entities.countDocuments({ tenantId })).toBe(0);
    expect(await findEverywhere(service, ['lovelace'])).toEqual([]);
    const entries = await service.models.adminAudit.find({ path: `/admin/v1${path}/deletions` }).lean();
    expect(entries.map(({ changesJson }) => changesJson)).toEqual([
      expect.stringMatching(/^{"scope":"entity","entity_hash":"erased_[\w-]+"}$/),
    ]);
    expect((await ask()).body).toMatchObject({ id: (answer.body as Body)['id'], entity_id: null });
  });
});

describe('a closed tenant', () => {
  it('is refused at once, keeps its money and its log, and nothing else of it is left', async () => {
    const { path, tenantId, key } = await startCustomer();
    const api = apiOf(service, key);
    await api('post', '/webhooks', { url: 'https://example.com/', events: ['key.created'] });
    await api('post', '/keys', { name: 'second' }, { 'Idempotency-Key': 'key' });
    await api('post', '/batches', { requests: [{ custom_id: 'Ada', body: chatOf('Hi') }], metadata: { of: 'Ada' } });
    await completed(String((await service.admin('post', `${path}/exports`, { scope: 'tenant' })).headers['location']));
    const answer = await service.admin('delete', path);
    expect([answer.status, (answer.body as Body)['status']]).toEqual([202, 'closed']);
    expect(await statusOf(key)).toBe(403);

    await completed(String(answer.headers['location']));
    const left = Object.entries(service.models).map(async ([name, { collection }]) =>
      (await collection.countDocuments({ tenantId })) > 0 ? name : [],
    );
    // `complianceJobs` has this deletion, and `erasures` its mark.
    const kept = ['audit', 'complianceJobs', 'erasures', 'ledger', 'usageRollUps'];
    expect((await Promise.all(left)).flat().sort()).toEqual(kept);
    expect(await service.models.complianceJobs.countDocuments({ tenantId })).toBe(1);
    const { body: tenant } = await service.admin('get', path);
    expect(tenant).toMatchObject({ name: 'Closed', status: 'closed' });
    const { data } = (await service.admin('get', `${path}/transactions`)).body as { data: Body[] };
    // The batch's line may have run.
    expect(new Set(data.map(({ type }) => type))).toEqual(new Set(['usage', 'grant']));
  });

  it('is erased as a whole by a deletion of its conversations that has begun before', async () => {
    const { path, tenantId } = await startCustomer();
    const begun = await service.admin('post', `${path}/deletions`, { scope: 'tenant', reason: 'Before' });
    await waitFor(() => service.models.erasures.exists({ tenantId }), 'its mark');
    const answer = await service.admin('delete', path);
    expect(answer.headers['location']).toBe(begun.headers['location']);

    await completed(String(answer.headers['location']));
    expect(await service.models.keys.countDocuments({ tenantId })).toBe(0);
    expect((await service.admin('get', path)).body).toMatchObject({ name: 'Closed', status: 'closed' });
  });

  it('stays closed', async () => {
    const { path, tenantId } = await startCustomer();
    const first = await service.admin('delete', path);
    const again = await service.admin('delete', path);
    expect([first.status, again.status]).toEqual([202, 202]);
    expect((await service.admin('patch', path, { status: 'active' })).status).toBe(409);
    expect((await service.admin('patch', path, { rpm: 5, name: 'x' })).status).toBe(409);
    expect((await service.admin('post', `${path}/keys`, { name: 'k' })).status).toBe(409);
    expect((await service.admin('get', path)).body).toEqual(again.body);
    // The call has found it open a moment before.
    const deps = { keys: createKeyRepository(service.mongo), keyPrefix: 'svc' };
    const late = createKey(deps, tenantId, { name: '', mode: 'live', scopes: ['*'] }, Date.now());
    await expect(late).rejects.toMatchObject({ code: 'conflict' });
  });
});
