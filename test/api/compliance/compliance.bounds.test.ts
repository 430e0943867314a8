import { describe, expect, it } from '@jest/globals';

import { errorOf } from '../../support/chat.ts';
import { jobOf } from '../../support/compliance.ts';
import type { ComplianceResource } from '../../support/compliance.ts';
import { apiOf } from '../../support/tenant-api.ts';
import type { CallApi } from '../../support/tenant-api.ts';
import { useService } from '../../support/use-service.ts';

const OPEN_MAX = 20;

describe('deletions', () => {
  const service = useService();

  const start = async () => apiOf(service, (await service.startTenant()).key);
  const deleteEntity = (api: CallApi, entity: string | number) =>
    api('post', '/compliance/deletions', { scope: 'entity', entity_id: `pupil-${entity}` });
  const deleteAll = (api: CallApi) => api('post', '/compliance/deletions', { scope: 'tenant' });

  async function listed(api: CallApi): Promise<ComplianceResource[]> {
    return (await api('get', '/compliance/deletions?limit=100')).body.data as ComplianceResource[];
  }

  it('of the whole tenant are one at a time, however many ask at once, and the refusal names it', async () => {
    const api = await start();

    const answers = await Promise.all(Array.from({ length: 8 }, () => deleteAll(api)));

    const [taken, ...others] = answers.filter(({ status }) => status === 202);
    const id = String(taken?.body.id);
    expect(others).toEqual([]);
    for (const refused of answers.filter(({ status }) => status !== 202)) {
      expect(refused.status).toBe(409);
      expect(errorOf(refused)).toMatchObject({ code: 'conflict' });
      expect(errorOf(refused)['message']).toContain(id);
    }
    expect((await jobOf(api, 'deletions', id)).status).toBe('completed');
    expect((await deleteAll(api)).status).toBe(202);
  });

  it('of entities are 20 at most, and one of the same entity that has not begun is the same', async () => {
    const { tenantId, key } = await service.startTenant();
    const api = apiOf(service, key);
    // So many wait, and no worker may take them.
    const rows = Array.from({ length: OPEN_MAX - 1 }, (_, index) => ({
      ...{ _id: `del_${tenantId}${index}`, tenantId, kind: 'deletion', scope: 'entity', entityId: `pupil-${index}` },
      ...{ status: 'queued', claim: 0, claimedUntil: Date.now() + 3_600_000, createdAt: Date.now() },
      sole: `${tenantId} live deletion ${index}`,
    }));
    await service.models.complianceJobs.insertMany(rows);

    const same = await deleteEntity(api, 3);
    const last = await deleteEntity(api, 'last');
    await service.models.complianceJobs.updateOne({ _id: last.body.id }, { $set: { status: 'in_progress' } });
    const more = await deleteEntity(api, 'last');

    expect([same.status, same.body.id]).toEqual([202, `del_${tenantId}3`]);
    expect(same.headers['location']).toBe(`/platform/v1/compliance/deletions/del_${tenantId}3`);
    expect(last.status).toBe(202);
    expect(more.status).toBe(409);
    expect(errorOf(more)['message']).toContain('20 deletions of entities');
  });

  it('of one tenant go together, as many as wait', async () => {
    const { tenantId, key } = await service.startTenant();
    const api = apiOf(service, key);
    // No worker may take them before all are there.
    const until = { claimedUntil: Date.now() + 3_600_000 };
    const answers = await Promise.all(
      Array.from({ length: OPEN_MAX }, async (_, index) => {
        const answer = await deleteEntity(api, index);
        await service.models.complianceJobs.updateOne({ _id: answer.body.id, status: 'queued' }, { $set: until });
        return answer;
      }),
    );
    const held = await service.models.complianceJobs.find({ tenantId, status: 'queued' }, { _id: 1 }).lean();
    const waiting = new Set(held.map(({ _id }) => _id));
    await service.models.complianceJobs.updateMany({ tenantId, status: 'queued' }, { $set: { claimedUntil: 0 } });
    let most = 0;
    const count = async () => {
      const running = (await listed(api)).filter(({ id, status }) => status === 'in_progress' && waiting.has(id));
      most = Math.max(most, running.length);
    };

    const state = { hasEnded: false };
    const all = Promise.all(answers.map(({ body }) => jobOf(api, 'deletions', String(body.id), 80_000)));
    const ending = all.finally(() => (state.hasEnded = true));
    while (!state.hasEnded) await count();

    expect((await ending).map(({ status }) => status)).toEqual(answers.map(() => 'completed'));
    // The worker has taken some before they could be kept from it.
    expect(waiting.size).toBeGreaterThan(3);
    expect(most).toBe(waiting.size);
  }, 90_000);
});

describe('while no worker takes them, however many ask at once', () => {
  const service = useService({ workers: 0 });

  it.each([
    ['deletions of entities', '/compliance/deletions', OPEN_MAX],
    ['exports', '/compliance/exports', 5],
  ])('%s are as many as may be open', async (_what, path, most) => {
    const api = apiOf(service, (await service.startTenant()).key);
    const ask = (_: unknown, index: number) => api('post', path, { scope: 'entity', entity_id: `pupil-${index}` });

    const answers = await Promise.all(Array.from({ length: most + 10 }, ask));

    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array<number>(most).fill(202), ...Array<number>(10).fill(409)]);
  });
});
