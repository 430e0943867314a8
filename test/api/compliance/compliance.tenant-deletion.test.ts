import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

import { timeOfSeq } from '../../../shared/domain/request-times.ts';
import { ledgerOf, postChat } from '../../support/chat.ts';
import { itemOf, ndjsonOf, openPost } from '../../support/batch-client.ts';
import { createBatchLab } from '../../support/batch-lab.ts';
import { jobOf } from '../../support/compliance.ts';
import { openDeletionCase, useDeletionService } from '../../support/compliance-lab.ts';
import type { DeletionCase } from '../../support/compliance-lab.ts';
import { refusalOf } from '../../support/refusal.ts';
import { findEverywhere } from '../../support/search-stores.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { waitUntil } from '../../support/wait-for.ts';
let one: DeletionCase;
// One request at a time: the next one waits in its queue.
const service = useDeletionService({ env: { WORKER_CONCURRENCY: '1' } });
beforeEach(async () => {
  one = await openDeletionCase(service);
});
afterEach(() => one.receiver.close());

describe('the deletion of all conversations of a tenant', () => {
  it('leaves none of them anywhere, and account, keys and audit log as they are', async () => {
    const { api, entity, word } = one;
    const other = await openDeletionCase(service);
    await postChat(service.app, other.tenant.key, other.said());
    await one.leaveTraces();
    await api('put', '/entities/second', { name: word });
    const billing = (await api('get', '/billing')).body as { balance: number };
    const actions = async () =>
      ((await api('get', '/compliance/audit_log?order=asc&limit=100')).body.data as { action: string }[]).map(
        ({ action }) => action,
      );
    const audited = await actions();

    const deletion = await one.delete({ scope: 'tenant', reason: 'The contract has ended.' });

    const words = [entity, encodeURIComponent(entity), word, word.toLowerCase()];
    expect(await findEverywhere(service, words)).toEqual([]);
    expect(deletion).toMatchObject({ status: 'completed', scope: 'tenant', entity_id: null, entity_hash: null });
    expect(deletion['reason']).toBe('The contract has ended.');
    for (const [store, count] of Object.entries(deletion.report)) expect([store, count > 0]).toEqual([store, true]);
    expect((await api('get', '/billing')).body).toMatchObject({ balance: billing.balance });
    expect(await actions()).toEqual([...audited, 'compliance.deletion_requested']);
    expect((await api('get', '/keys')).body.data).toHaveLength(1);
    expect((await api('get', '/entities')).body.data).toEqual([]);
    const { body } = await other.api('get', `/entities/${encodeURIComponent(other.entity)}/history`);
    expect(body.data).toHaveLength(2);
    expect(service.log.errors()).toEqual([]);
    await other.receiver.close();
  }, 120_000);

  it('marks once more what was accepted up to two seconds after its lines of batches were erased', async () => {
    await one.delete({ scope: 'tenant' });

    const { tenantId } = one.tenant;
    const job = await service.models.complianceJobs.findOne({ tenantId }).lean();
    const mark = await service.models.erasures.findOne({ tenantId }).lean();
    expect(timeOfSeq(mark?.seq ?? 0)).toBeGreaterThan((job?.createdAt ?? Infinity) + 2_000);
  }, 60_000);

  it('can be repeated, and changes no pseudonym', async () => {
    const { api, tenant } = one;
    await ledgerOf(service, await postChat(service.app, tenant.key, one.said()));
    await one.delete({ scope: 'tenant' });

    const second = await one.delete({ scope: 'tenant' });

    expect(Object.values(second.report)).toEqual(Object.values(second.report).map(() => 0));
    const { body } = await api('get', '/usage/requests');
    expect(body.data).toMatchObject([{ entity_id: one.pseudonym }]);
  }, 60_000);
});

describe('a request that waits in its queue', () => {
  it('ends with the deletion of its entity and is out of the queue, before it has run', async () => {
    const { api, tenant, said } = one;
    const running = await one.beginEndless({
      entity_id: 'neighbour',
      messages: [{ role: 'user', content: 'Hi' }],
      metadata: {},
    });
    const queued = await postChat(service.app, tenant.key, said()).set('Prefer', 'respond-async');
    const { tag } = service.keyspace.shard(0);
    const job = `${tag}:interactive:${String(queued.body.id)}`;
    expect(await service.redis.exists(job)).toBe(1);

    const { report } = await one.delete({ scope: 'entity', entity_id: one.entity });

    expect(report).toMatchObject({ queued_jobs: 1, streams: 1 });
    expect(await service.redis.exists(job)).toBe(0);
    expect(service.provider.request(String(queued.body.id))).toBeUndefined();
    expect(await findEverywhere(service, [one.entity, one.word])).toEqual([]);
    await api('post', `/chat/${running}/cancel`);
  }, 60_000);
});

describe('a batch that arrives while its entity is deleted', () => {
  it('has no name of the entity afterwards, and runs nothing of it', async () => {
    const { tenant, entity, pseudonym } = one;
    const call = openPost(service, tenant.key);
    call.write(`${ndjsonOf([itemOf('other'), itemOf(`of ${entity}`, { entity_id: entity })])}\n`);
    await one.delete({ scope: 'entity', entity_id: entity });

    call.end();

    const { batchLines } = service.models;
    const ended = { tenantId: tenant.tenantId, state: { $ne: 'waiting' as const } };
    await waitUntil(async () => (await batchLines.countDocuments(ended)) === 2, 'both lines to end');
    const error = { code: 'gone' };
    expect(await batchLines.find(ended).sort({ index: 1 }).lean()).toMatchObject([
      { state: 'completed', customId: 'other' },
      { state: 'failed', customId: `of ${pseudonym}`, entityId: pseudonym, error },
    ]);
    expect(await findEverywhere(service, [entity])).toEqual([]);
  }, 60_000);
});

describe('a line of a batch that waits for credits', () => {
  it.each(['deleted', 'deleted and made anew'])(
    'brings no entity back that was %s',
    async (what) => {
      const poor = await service.startTenant({ credits: 0 });
      const [lab, api] = [createBatchLab(service), apiOf(service, poor.key)];
      await api('put', '/entities/pupil', {});
      const batchId = await lab.submit(poor, ['Of the entity'], { entityId: 'pupil' });
      await lab.until(batchId, 'to wait', ({ waitingFor }) => waitingFor === 'credits');
      await api('delete', '/entities/pupil');
      if (what !== 'deleted') await api('put', '/entities/pupil', {});

      await service.admin('post', `/tenants/${poor.tenantId}/credits`, { credits: 10_000, reason: 'test' });

      await lab.until(batchId, 'to end', ({ endedAt }) => endedAt !== undefined);
      expect(await lab.lines(batchId)).toMatchObject([{ state: 'failed', error: { code: 'gone' } }]);
      const { status, body } = await api('get', '/entities/pupil/history');
      expect(what === 'deleted' ? status : body.data).toEqual(what === 'deleted' ? 404 : []);
      const later = await lab.submit(poor, ['Later'], { entityId: 'pupil' });
      expect(await lab.until(later, 'to end', ({ endedAt }) => endedAt !== undefined)).toMatchObject({ completed: 1 });
      expect((await api('get', '/entities/pupil/history')).body.data).toHaveLength(2);
    },
    60_000,
  );

  it('ends with the deletion of its entity, and is not sent when there are some', async () => {
    const poor = await service.startTenant({ credits: 0 });
    const lab = createBatchLab(service);
    const batchId = await lab.submit(poor, ['Of the entity'], { entityId: 'pupil' });
    await lab.until(batchId, 'to wait', ({ waitingFor }) => waitingFor === 'credits');
    const api = apiOf(service, poor.key);
    const { body } = await api('post', '/compliance/deletions', { scope: 'entity', entity_id: 'pupil' });
    await jobOf(api, 'deletions', String(body.id));

    await service.admin('post', `/tenants/${poor.tenantId}/credits`, { credits: 1_000, reason: 'test' });

    await lab.until(batchId, 'to end', ({ endedAt, failed }) => endedAt !== undefined && failed === 1);
    const [line] = await lab.lines(batchId);
    expect(line).toMatchObject({ state: 'failed', error: { code: 'gone' } });
    expect(service.provider.request(line?.requestId ?? '')).toBeUndefined();
  }, 60_000);
});

describe('POST /compliance/deletions', () => {
  it.each([
    [{}, 'scope'],
    [{ scope: 'everything' }, 'scope'],
    [{ scope: 'entity' }, 'entity_id'],
    [{ scope: 'tenant', entity_id: 'pupil' }, 'entity_id'],
    [{ scope: 'entity', entity_id: 42 }, 'entity_id'],
    [{ scope: 'entity', entity_id: 'pupil', reason: 'x'.repeat(501) }, 'reason'],
    [{ scope: 'tenant', reason: null }, 'reason'],
  ])('POST /compliance/deletions refuses %j', async (body, param) => {
    expect(refusalOf(await one.api('post', '/compliance/deletions', body))).toMatchObject({
      status: 400,
      code: 'invalid_request',
      param,
    });
  });

  it('lists deletions newest first, each with its place', async () => {
    const { api } = one;
    for (const entity_id of ['first', 'second'])
      await api('post', '/compliance/deletions', { scope: 'entity', entity_id });

    const { body } = await api('get', '/compliance/deletions?limit=1');

    expect(body).toMatchObject({ object: 'list', has_more: true });
    expect(body.data).toMatchObject([{ object: 'compliance.deletion', scope: 'entity' }]);
    const next = await api('get', `/compliance/deletions?limit=1&after=${String(body.last_id)}`);
    expect(next.body).toMatchObject({ has_more: false, first_id: expect.stringMatching(/^del_/) });
    expect((await api('get', `/compliance/exports/${String(body.last_id)}`)).status).toBe(404);
    expect((await api('get', '/compliance/exports')).body.data).toEqual([]);
  });
});
