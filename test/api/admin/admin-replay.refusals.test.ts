import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { monthOf } from '../../../shared/domain/pricing.ts';
import { expectUncharged } from '../../support/chat.ts';
import { replayLab } from '../../support/replay-lab.ts';
import type { TestTenant } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';
import { usedOf } from '../../support/use-window.ts';

/** docs/spec.md#replay: what has changed since the request was accepted counts. */
describe('a failed request is not replayed', () => {
  const service = useService();
  const lab = replayLab(service);
  beforeAll(() => service.setProvider({ max_retries: 0 }));
  afterEach(() => {
    service.provider.restore();
    service.provider.reset();
  });

  const call = (tenant: TestTenant, method: 'put' | 'delete', path: string, body: object = {}) =>
    request(service.app)[method](`/platform/v1${path}`).auth(tenant.key, { type: 'bearer' }).send(body);
  const patch = (tenant: TestTenant, changes: object) => service.admin('patch', `/tenants/${tenant.tenantId}`, changes);

  /** When the limits have counted the request, and how many of its tenant. */
  async function countsOf({ tenantId, keyId }: TestTenant, id: string) {
    const keys = service.keyspace.shard(0);
    const { requests } = await usedOf(service.redis, keys.account(tenantId));
    return [await service.redis.zscore(keys.keyRpm(keyId), id), requests];
  }

  /** It has failed as before, may be replayed later, and nobody was called, charged or counted. */
  async function expectUnchanged(tenant: TestTenant, id: string, reason: string): Promise<void> {
    const before = await lab.get(tenant, id);
    const counts = await countsOf(tenant, id);

    expect(await lab.reasonOf(id)).toBe(reason);

    expect(await countsOf(tenant, id)).toEqual(counts);

    expect((await lab.get(tenant, id)).body).toEqual(before.body);
    expect((await lab.replay({ request_ids: [id], dry_run: true })).matched).toBe(1);
    expect(service.provider.stats().calls).toBe(0);
    expect(await service.models.ledger.countDocuments({ requestId: id })).toBe(0);
  }

  it('whose key is revoked', async () => {
    const tenant = await service.startTenant();
    const { id } = await lab.failed(tenant);
    const answer = await service.admin('delete', `/tenants/${tenant.tenantId}/keys/${tenant.keyId}`);
    expect(answer.status).toBe(200);

    expect(await lab.reasonOf(id)).toBe('key_revoked');
    expect(service.provider.stats().calls).toBe(0);
  });

  it('while its account is suspended, and is afterwards', async () => {
    const tenant = await service.startTenant();
    const { id } = await lab.failed(tenant);
    await patch(tenant, { status: 'suspended' });
    expect(await lab.reasonOf(id)).toBe('account_suspended');

    await patch(tenant, { status: 'active' });

    expect(await lab.reasonOf(id)).toBeNull();
    await lab.ended(tenant, id);
  });

  it('whose entity has been deleted', async () => {
    const tenant = await service.startTenant();
    const entity = { entity_id: 'pupil-7' };
    await call(tenant, 'put', '/entities/pupil-7', { name: 'Ada' });
    const { id } = await lab.failed(tenant, entity);
    expect((await call(tenant, 'delete', '/entities/pupil-7')).status).toBe(200);

    await expectUnchanged(tenant, id, 'entity_deleted');
  });

  it('without credits for it, and is once there are some', async () => {
    const tenant = await service.startTenant({ credits: 1_000 });
    const { id } = await lab.failed(tenant);
    const path = `/tenants/${tenant.tenantId}/credits`;
    await service.admin('post', path, { credits: -1_000, reason: 'Test' });
    await expectUnchanged(tenant, id, 'insufficient_credits');
    await expectUncharged(service, tenant.tenantId, 0);

    await service.admin('post', path, { credits: 1_000, reason: 'Test' });

    expect(await lab.reasonOf(id)).toBeNull();
    await lab.ended(tenant, id);
  });

  it('without budget left in the month of its acceptance, whatever this month has', async () => {
    const tenant = await service.startTenant({ tenant: { monthly_token_budget: 1_000 } });
    const { id } = await lab.failed(tenant);
    const acceptedAt = Date.UTC(2026, 0, 31);
    const row = await service.models.requestIntents.findById(id).lean();
    const envelopeJson = JSON.stringify({ ...JSON.parse(row?.envelopeJson ?? ''), acceptedAt });
    await service.models.requestIntents.updateOne({ _id: id }, { $set: { envelopeJson, acceptedAt } });
    /** As if that had been settled. */
    const settle = async (tokensByMonth: Record<string, number>) => {
      await service.models.accounts.updateOne({ _id: tenant.tenantId }, { $set: { tokensByMonth } });
      await service.redis.del(service.keyspace.shard(0).account(tenant.tenantId));
    };
    await settle({ 202601: 1_000 });
    expect(await lab.reasonOf(id)).toBe('budget_exceeded');

    await settle({ 202601: 0, [monthOf(Date.now())]: 1_000 });

    expect(await lab.reasonOf(id)).toBeNull();
    await lab.ended(tenant, id);
  });

  it('whose tenant keeps nothing any more', async () => {
    const tenant = await service.startTenant();
    const { id } = await lab.failed(tenant);
    await patch(tenant, { retention_seconds: 0 });

    expect(await lab.reasonOf(id)).toBe('nothing_is_kept');
    expect(service.provider.stats().calls).toBe(0);
  });

  it('while others of its account leave no room, which the requests a minute do not matter for', async () => {
    const tenant = await service.startTenant({ key: { rpm: 2 } });
    const { id } = await lab.failed(tenant);
    service.provider.change({ first_token_ms: 1_500 });
    const other = String((await lab.send(tenant, 'Something else')).body.id);
    await patch(tenant, { max_in_flight: 1 });

    const done = await lab.replay({ request_ids: [id] });
    await lab.ended(tenant, other);

    expect(done.skipped_reasons).toEqual([{ reason: 'limit_reached', count: 1 }]);
    expect(done.retry_after_seconds).toBeGreaterThan(0);
    expect((await lab.get(tenant, id)).body.status).toBe('failed');
    expect(await lab.reasonOf(id)).toBeNull();
    await lab.ended(tenant, id);
  });
});
