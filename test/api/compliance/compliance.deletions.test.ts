import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

import { ledgerOf, postChat, waitFor, waitUntil } from '../../support/chat.ts';
import { openDeletionCase, settlementOf, useDeletionService } from '../../support/compliance-lab.ts';
import type { DeletionCase } from '../../support/compliance-lab.ts';
import { refusalOf } from '../../support/refusal.ts';
import { findEverywhere } from '../../support/search-stores.ts';
import { apiOf } from '../../support/tenant-api.ts';
let one: DeletionCase;
const service = useDeletionService();
beforeEach(async () => {
  one = await openDeletionCase(service);
});
afterEach(() => one.receiver.close());

const ofEntity = () => ({ scope: 'entity', entity_id: one.entity });
const entityPath = () => `/entities/${encodeURIComponent(one.entity)}`;

describe('the deletion of an entity', () => {
  it('leaves nothing of it in MongoDB, Redis, queues or logs', async () => {
    const { api, entity, word, receiver } = one;
    const words = [entity, encodeURIComponent(entity), 'zanzibar', word, word.toLowerCase()];
    await one.leaveTraces();
    // What the search finds before: it would find it afterwards, too.
    expect(await findEverywhere(service, words)).toEqual([
      ...['mongo:answers', 'mongo:audit_log', 'mongo:batch_lines', 'mongo:compliance_jobs', 'mongo:entities'],
      ...['mongo:idempotency', 'mongo:ledger', 'mongo:request_intents', 'mongo:usage_rollups', 'mongo:webhook_events'],
      ...['redis:a', 'redis:b', 'redis:outbox', 'redis:r', 'redis:s'],
    ]);

    const reason = `${entity} has asked for it`;
    const deletion = await one.delete({ ...ofEntity(), reason }, { 'Idempotency-Key': 'deletion' });

    expect(await findEverywhere(service, words)).toEqual([]);
    expect(await service.models.exportChunks.countDocuments({ tenantId: one.tenant.tenantId })).toBe(0);
    const { id, entity_hash: hash, report } = deletion;
    expect(deletion).toMatchObject({ status: 'completed', entity_id: null, entity_hash: one.pseudonym, error: null });
    expect(deletion['reason']).toBe(`${hash} has asked for it`);
    const { requests, ...stores } = report;
    for (const [store, count] of Object.entries(stores)) expect([store, count > 0]).toEqual([store, true]);
    // What the log of requests has names no entity.
    expect(requests).toBe(0);
    expect(report).toMatchObject({ entity: 1, queued_jobs: 2, batches: 2, exports: 2 });
    const told = await receiver.next('compliance.deletion.completed');
    expect(told.body.data).toEqual({ id, scope: 'entity', entity_id: null, entity_hash: hash });
    const again = await api(
      'post',
      '/compliance/deletions',
      { ...ofEntity(), reason },
      { 'Idempotency-Key': 'deletion' },
    );
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.body).toMatchObject({ id, entity_id: null, entity_hash: hash });
    for (const { id: exportId } of (await api('get', '/compliance/exports')).body.data as { id: string }[])
      expect((await api('get', `/compliance/exports/${exportId}/download`)).status).toBe(410);
    expect(service.log.errors()).toEqual([]);
  }, 90_000);

  it('leaves other entities, and the entity of the same name with another tenant, as they are', async () => {
    const { api, tenant, said } = one;
    const other = await service.startTenant();
    await postChat(service.app, tenant.key, said({ entity_id: 'neighbour' }));
    await postChat(service.app, other.key, said());
    await ledgerOf(service, await postChat(service.app, tenant.key, said()));
    const figures = async () => {
      const [usage, billing] = [await api('get', '/usage?bucket_width=1d'), await api('get', '/billing')];
      return { usage: usage.body as unknown, balance: billing.body.balance as number };
    };
    const before = await figures();

    const { entity_hash: hash } = await one.delete(ofEntity());

    expect((await api('get', '/entities/neighbour/history')).body.data).toHaveLength(2);
    expect((await apiOf(service, other.key)('get', `${entityPath()}/history`)).body.data).toHaveLength(2);
    expect(await figures()).toEqual(before);
    const { body } = await api('get', '/usage?group_by=entity_id');
    const groups = (body.data as { results: { entity_id: string }[] }[]).flatMap(({ results }) => results);
    expect(groups.map(({ entity_id }) => entity_id).sort()).toEqual([hash, 'neighbour'].sort());
    const lines = (await api('get', '/usage/requests')).body.data as { entity_id: string }[];
    expect(lines.map(({ entity_id }) => entity_id).sort()).toEqual([hash, 'neighbour'].sort());
  });

  it('ends what runs for it, and a caller who waits hears so', async () => {
    const { api, tenant, pseudonym, said } = one;
    const waiting = postChat(service.app, tenant.key, said({ model: 'oloid' })).then((response) => response);
    const running = await one.beginEndless({ messages: [{ role: 'user', content: 'Another' }] });
    await one.beginEndless({ entity_id: 'neighbour' });
    const list = service.keyspace.shard(0).entityRequests(tenant.tenantId, pseudonym);
    await waitUntil(async () => (await service.redis.zcard(list)) === 2, 'both requests');
    const held = async () => (await service.admin('get', `/tenants/${tenant.tenantId}`)).body.held as number;

    const { report } = await one.delete(ofEntity());

    expect(refusalOf(await waiting)).toMatchObject({ status: 409, code: 'conflict' });
    expect(report).toMatchObject({ queued_jobs: 2, streams: 2, entity: 0 });
    expect((await api('get', `/chat/${running}`)).status).toBe(404);
    expect(await service.redis.exists(list)).toBe(0);
    // A job that a worker has in hand ends with its delivery, which the deletion does not wait for.
    const job = `${service.keyspace.shard(0).tag}:interactive:${running}`;
    await waitUntil(async () => (await service.redis.exists(job)) === 0, 'the end of the job');
    // The neighbour's request goes on.
    expect(await held()).toBeGreaterThan(0);
    await one.delete({ scope: 'tenant' });
    expect(await held()).toBe(0);
  }, 60_000);

  it('is final for earlier requests, and a later one makes the entity anew', async () => {
    const { api, tenant, entity, receiver, said } = one;
    const acceptedAt = Date.now();
    await ledgerOf(service, await postChat(service.app, tenant.key, said()));
    const { entity_hash: hash } = await one.delete(ofEntity());
    await one.subscribe();

    const late = settlementOf(tenant, entity, acceptedAt);
    await service.redis.xadd(service.keyspace.shard(0).outbox, '*', 's', JSON.stringify(late));
    const entry = await waitFor(() => service.models.ledger.findOne({ requestId: late.requestId }).lean(), 'a booking');
    expect(entry.entityId).toBe(hash);
    expect((await receiver.next('chat.completed')).body.data).toMatchObject({ entity_id: hash });
    await waitUntil(async () => (await findEverywhere(service, [entity])).length === 0, 'the outbox to be empty');

    await postChat(service.app, tenant.key, said({ messages: [{ role: 'user', content: 'Anew' }] }));
    const { body } = await api('get', `${entityPath()}/history?order=asc`);
    expect((body.data as { content: string }[]).map(({ content }) => content)).toEqual(['Anew', 'Anew']);
  });

  it('catches requests in every state of their end, and nothing of them comes back', async () => {
    const { tenant, entity, word, said } = one;
    await one.subscribe();
    service.provider.change({ first_token_ms: 500 });
    const calls = Array.from({ length: 40 }, (_, index) => {
      const call = postChat(service.app, tenant.key, said()).set('Prefer', 'respond-async');
      return index % 2 === 0 ? call : call.set('Idempotency-Key', `key-${index}`);
    });
    for (const { status } of await Promise.all(calls)) expect(status).toBe(202);

    const { report } = await one.delete(ofEntity());

    expect(report['streams']).toBe(40);
    expect(await findEverywhere(service, [entity, word])).toEqual([]);
    service.provider.restore();
    // Whatever was still to be booked or told has been when this is.
    const last = await postChat(service.app, tenant.key, { messages: [{ role: 'user', content: 'Hi' }] });
    await ledgerOf(service, last);
    await one.receiver.next('compliance.deletion.completed');
    expect(await findEverywhere(service, [entity, word])).toEqual([]);
  }, 60_000);

  it('of one that nobody knows is completed all the same', async () => {
    const deletion = await one.delete({ scope: 'entity', entity_id: 'nobody' });

    expect(deletion).toMatchObject({ status: 'completed', entity_id: null, error: null });
    expect(Object.values(deletion.report)).toEqual(Object.values(deletion.report).map(() => 0));
  });

  it('the deletion of an entity goes on where its worker has died', async () => {
    const { tenant, entity, pseudonym } = one;
    await ledgerOf(service, await postChat(service.app, tenant.key, one.said()));
    const { tenantId } = tenant;
    const _id = `del_${'D'.repeat(24)}`;
    await service.models.complianceJobs.create({
      ...{ _id, tenantId, kind: 'deletion', scope: 'entity', entityId: entity, entityHash: pseudonym },
      ...{ status: 'in_progress', claim: 1, claimedUntil: Date.now() - 1, createdAt: Date.now() - 60_000 },
    });

    const row = await waitFor(
      async () => (await service.models.complianceJobs.findOne({ _id, status: 'completed' }).lean()) ?? undefined,
      'the end of the deletion',
      20_000,
    );

    expect(row.claim).toBe(2);
    expect(await findEverywhere(service, [entity])).toEqual([]);
  });
});

describe('a deletion beside an export', () => {
  it('has the export of the tenant made again, without the entity', async () => {
    const { api, tenant, entity } = one;
    await postChat(service.app, tenant.key, one.said());
    const { tenantId } = tenant;
    const _id = `exp_${'E'.repeat(24)}`;
    const chunk = { _id: `${_id}:1:0`, tenantId, exportId: _id, claim: 1, data: Buffer.from(entity) };
    await service.models.exportChunks.create({ ...chunk, expiresAt: new Date(Date.now() + 60_000) });
    await service.models.complianceJobs.create({
      ...{ _id, tenantId, kind: 'export', scope: 'tenant', status: 'in_progress', claim: 1, createdAt: Date.now() },
      claimedUntil: Date.now() + 60_000,
    });

    await one.delete(ofEntity());

    expect(await service.models.exportChunks.countDocuments({ exportId: _id, claim: 1 })).toBe(0);
    // It waits for a while, so that the deletion gets on; no need to do so here.
    await service.models.complianceJobs.updateOne({ _id, status: 'queued' }, { $set: { claimedUntil: Date.now() } });
    await waitUntil(
      async () => (await api('get', `/compliance/exports/${_id}`)).body.status === 'completed',
      'the export',
      20_000,
    );
    expect((await api('get', `/compliance/exports/${_id}/download`)).status).toBe(200);
  }, 60_000);
});
