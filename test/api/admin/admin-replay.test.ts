import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { createTenantMoves } from '../../../shared/mongo/administration/tenant-moves.ts';
import {
  chatOf,
  ledgerOf,
  parseSse,
  postChat,
  postStream,
  requestIdOf,
  textOf,
  waitFor,
  waitUntil,
} from '../../support/chat.ts';
import { QUESTION, replayLab } from '../../support/replay-lab.ts';
import { setRates } from '../../support/set-rates.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService } from '../../support/use-service.ts';

/** docs/spec.md#replay. */
describe('POST /admin/v1/requests/replay', () => {
  const service = useService({ env: { WEBHOOK_ALLOW_PRIVATE: 'true' } });
  beforeAll(() => service.setProvider({ max_retries: 0 }));
  afterEach(() => {
    service.provider.restore();
    service.provider.reset();
  });

  const lab = replayLab(service);
  const { get, ended, replay, reasonOf } = lab;
  const usageOf = (id: string) => service.models.ledger.countDocuments({ requestId: id });

  it('runs a request again that an outage has failed: the old id answers, with one charge', async () => {
    const tenant = await service.startTenant();
    const { id, accepted } = await lab.failed(tenant);
    expect(await usageOf(id)).toBe(0);

    const done = await replay({ request_ids: [id] });

    expect(done).toMatchObject({ matched: 1, replayed: 1, skipped: 0, next_page: null });
    expect(done.data).toMatchObject([
      { id, kind: 'async', error_code: 'model_unavailable', outcome: 'replayed', reason: null },
    ]);
    const { body } = await ended(tenant, id);
    expect(body).toMatchObject({ created_at: accepted.body.created_at, error: null });
    expect(body.response.choices[0].message.content).not.toBe('');
    const entry = await ledgerOf(service, { headers: { 'x-request-id': id } });
    expect(entry.amountMicro).toBeLessThan(0);
    expect([await usageOf(id), service.provider.request(id)?.calls]).toEqual([1, 1]);
    expect(await service.metrics()).toMatch(/parley_replays_total\{.*outcome="replayed".*\} [1-9]/);
    const stream = await request(service.app)
      .get(`/platform/v1/chat/stream/${id}`)
      .auth(tenant.key, { type: 'bearer' });
    expect(textOf(parseSse(stream.text))).toBe(body.response.choices[0].message.content);
  });

  it('charges the prices of its acceptance', async () => {
    const tenant = await service.startTenant({ credits: 10_000 });
    const { id } = await lab.failed(tenant);
    const before = await setRates(service, { prompt: 9, completion: 9 });

    await replay({ request_ids: [id] });
    const { usage } = ((await ended(tenant, id)).body as { response: { usage: { total_tokens: number } } }).response;
    await setRates(service, before);

    const { amountMicro } = await ledgerOf(service, { headers: { 'x-request-id': id } });
    expect(-amountMicro / 1_000_000).toBe(usage.total_tokens);
  });

  it('runs it once when it is asked for twice at once, and not at all once it has an answer', async () => {
    const tenant = await service.startTenant();
    const { id } = await lab.failed(tenant);
    service.provider.change({ first_token_ms: 300 });

    const both = await Promise.all([replay({ request_ids: [id] }), replay({ request_ids: [id] })]);
    const during = await reasonOf(id);
    await ended(tenant, id);

    expect(both.map(({ replayed }) => replayed).toSorted()).toEqual([0, 1]);
    expect([during, await reasonOf(id)]).toEqual(['not_replayable', 'not_replayable']);
    await ledgerOf(service, { headers: { 'x-request-id': id } });
    expect([await usageOf(id), service.provider.request(id)?.calls]).toEqual([1, 1]);
  });

  it('gives the new answer to whoever repeats the Idempotency-Key', async () => {
    const tenant = await service.startTenant();
    const { id } = await lab.failed(tenant, {}, { 'Idempotency-Key': 'order-1' });

    const done = await replay({ request_ids: [id] });
    await ended(tenant, id);
    const repeated = await postChat(service.app, tenant.key, chatOf(QUESTION)).set('Idempotency-Key', 'order-1');

    expect(done.data).toMatchObject([{ kind: 'keyed', outcome: 'replayed' }]);
    expect([repeated.status, repeated.headers['idempotent-replayed'], repeated.body.id]).toEqual([200, 'true', id]);
    expect(service.provider.stats().calls).toBe(1);
  });

  it('tells webhooks of the success after the failure, as an event of its own', async () => {
    const tenant = await service.startTenant();
    const events = ['chat.failed', 'chat.completed'];
    await apiOf(service, tenant.key)('post', '/webhooks', { url: 'https://receiver.invalid/x', events });
    const { id } = await lab.failed(tenant);
    const told = (type: 'chat.failed' | 'chat.completed') =>
      waitFor(
        () => service.models.webhookEvents.findOne({ tenantId: tenant.tenantId, type }).lean(),
        `the event ${type}`,
        20_000,
      );
    const failed = await told('chat.failed');

    await replay({ request_ids: [id] });

    const completed = await told('chat.completed');
    expect(completed._id).not.toBe(failed._id);
    for (const { bodyJson } of [failed, completed])
      expect(JSON.parse(bodyJson)).toMatchObject({ data: { request_id: id } });
  }, 60_000);

  it('does not keep its tenant from being moved to another shard', async () => {
    const tenant = await service.startTenant();
    const { id } = await lab.failed(tenant);
    expect((await replay({ request_ids: [id], dry_run: true })).matched).toBe(1);

    expect(await createTenantMoves(service.mongo).openTasks(tenant.tenantId)).toMatchObject({ intents: 0 });
  });

  it('leaves a request alone whose key its caller has used again', async () => {
    const tenant = await service.startTenant();
    const { id } = await lab.failed(tenant, {}, { 'Idempotency-Key': 'order-1' });
    const own = await postChat(service.app, tenant.key, chatOf(QUESTION)).set('Idempotency-Key', 'order-1');
    expect(own.status).toBe(200);

    expect(await reasonOf(id)).toBe('idempotency_key_reused');

    expect((await get(tenant, id)).body.status).toBe('failed');
    expect(service.provider.stats().calls).toBe(1);
  });

  it('skips what has text, which was charged, and what was refused for what it says', async () => {
    const tenant = await service.startTenant();
    service.provider.change({ text: 'one two three four', chunks: 4, fail: 'truncate', fail_after: 2 });
    const broken = await postStream(service.app, tenant.key, chatOf(QUESTION)).set('Idempotency-Key', 'story');
    const id = requestIdOf(broken);
    await ended(tenant, id, 'failed');
    service.provider.restore();
    const flagged = await lab.send(tenant, 'parley moderation test');
    await ended(tenant, String(flagged.body.id), 'failed');

    const done = await replay({ request_ids: [id, flagged.body.id] });

    expect(done).toMatchObject({ matched: 0, replayed: 0, skipped: 2 });
    expect(done.skipped_reasons).toEqual([{ reason: 'not_replayable', count: 2 }]);
  });

  it('keeps nothing of what failed because the model answered something else than JSON', async () => {
    const tenant = await service.startTenant();
    service.provider.change({ text: 'No JSON.' });
    const id = String((await lab.send(tenant, QUESTION, { json_mode: true })).body.id);
    await ended(tenant, id, 'failed');
    await waitFor(() => service.models.answers.findById(id).lean(), 'its end in MongoDB');

    expect(await replay({ request_ids: [id] })).toMatchObject({ matched: 0, replayed: 0 });
    const left = async () => ((await service.models.requestIntents.findById(id).lean()) === null ? true : undefined);
    await waitFor(left, 'its body to go', 20_000);
  });

  it('finds by tenant, code, kind and time, page by page, and changes nothing in a dry run', async () => {
    const tenant = await service.startTenant();
    const other = await service.startTenant();
    const ids = [(await lab.failed(tenant)).id, (await lab.failed(tenant)).id];
    await lab.failed(other);
    await service.models.requestIntents.updateMany({}, { $set: { lookAt: 0 } });
    const own = { tenant_id: tenant.tenantId };
    await waitUntil(
      async () => (await replay({ ...own, dry_run: true })).matched === 2,
      'the sweep to tell of both',
      20_000,
    );

    const first = await replay({ ...own, dry_run: true, limit: 1 });
    const second = await replay({ ...own, dry_run: true, limit: 1, page: first.next_page });
    const none = await Promise.all(
      [{ error_code: 'timeout' }, { kind: 'keyed' }, { end_time: 1 }, { start_time: 4_000_000_000 }].map((filter) =>
        replay({ ...own, ...filter }),
      ),
    );
    const done = await replay({ ...own, error_code: 'model_unavailable', kind: 'async', start_time: 1 });

    expect([first, second].map(({ data }) => data.map(({ id, outcome }) => [id, outcome]))).toEqual(
      ids.map((id) => [[id, 'matched']]),
    );
    expect([first.replayed, second.next_page]).toEqual([0, null]);
    expect(none.map(({ matched }) => matched)).toEqual([0, 0, 0, 0]);
    expect(done.data.map(({ id, outcome }) => [id, outcome])).toEqual(ids.map((id) => [id, 'replayed']));
    for (const id of ids) await ended(tenant, id);
    expect((await replay({ ...own, dry_run: true })).matched).toBe(0);
  }, 60_000);
});
