import { describe, expect, it } from '@jest/globals';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { itemOf, itemsOf, postBatch, postLines, resultsOf, storedOf } from '../../support/batch-client.ts';
import { expectUniformHeaders, refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useApi, useService, useTenantPerTest } from '../../support/use-service.ts';
// Nobody runs the batches: they stay as they were taken.
const service = useService({ workers: 0 });
const tenant = useTenantPerTest(service);
const api = useApi(service, tenant);

const linesOf = (batchId: unknown) =>
  service.models.batchLines
    .find({ batchId: String(batchId) })
    .sort({ index: 1 })
    .lean();

async function makeBatch(count = 2): Promise<string> {
  return String((await api('post', '/batches', { requests: itemsOf(count) })).body.id);
}

describe('POST /batches', () => {
  it('refuses one more than 100 that have not ended, and takes it when one has', async () => {
    const busy = await service.startTenant();
    const call = apiOf(service, busy.key);
    const first = await call('post', '/batches', { requests: itemsOf(1) });
    const row = await service.models.batches.findById(String(first.body.id)).lean();
    const more = Array.from({ length: BATCH_LIMITS.openMax - 1 }, () => ({ ...row, _id: newId('batch') }));
    await service.models.batches.insertMany(more, { lean: true });

    const refused = await call('post', '/batches', { requests: itemsOf(1) });
    expect(refused.status).toBe(409);
    expect(refusalOf(refused)).toMatchObject({ code: 'conflict' });
    await service.models.batches.updateOne({ _id: String(first.body.id) }, { $unset: { openShard: 1 } });
    expect((await call('post', '/batches', { requests: itemsOf(1) })).status).toBe(202);
  });

  it('POST /batches accepts requests and their metadata', async () => {
    const metadata = { run: 'nightly', tags: ['a', { b: 1 }] };
    const before = Math.floor(Date.now() / 1000);
    const response = await api('post', '/batches', { metadata, requests: itemsOf(3) });

    const { body } = response;
    expect(response.status).toBe(202);
    expectUniformHeaders(response);
    expect(response.headers['location']).toBe(`/platform/v1/batches/${String(body.id)}`);
    expect(body).toEqual({
      id: expect.stringMatching(/^batch_[0-9A-Za-z]{24}$/),
      object: 'batch',
      created_at: expect.any(Number),
      status: 'in_progress',
      request_counts: { total: 3, completed: 0, failed: 0 },
      waiting_for: null,
      metadata,
      key_id: tenant.keyId,
      mode: 'live',
      estimated_completion_at: null,
      started_at: null,
      expires_at: Number(body.created_at) + BATCH_LIMITS.lifeMs / 1000,
      cancelled_at: null,
      completed_at: null,
    });
    expect(body.created_at - before).toBeGreaterThanOrEqual(0);
    expect((await api('get', `/batches/${String(body.id)}`)).body).toEqual(body);
  });

  it('keeps each request in its place, with an id of its own', async () => {
    const requests = [itemOf('b', { entity_id: 'pupil', metadata: { a: 1 } }), itemOf('a', { model: 'oloid' })];
    const { body } = await api('post', '/batches', { requests });

    const lines = await linesOf(body.id);
    expect(lines.map(({ index, customId, entityId, state }) => [index, customId, entityId, state])).toEqual([
      [0, 'b', 'pupil', 'waiting'],
      [1, 'a', undefined, 'waiting'],
    ]);
    expect(new Set(lines.map(({ requestId }) => requestId)).size).toBe(2);
    for (const { requestId } of lines) expect(requestId).toMatch(/^req_[0-9A-Za-z]{24}$/);
    expect(lines.map(({ requestJson = '' }) => JSON.parse(requestJson) as unknown)).toEqual([
      expect.objectContaining({ entityId: 'pupil', metadataJson: '{"a":1}', maxTokens: 4_096 }),
      expect.objectContaining({ model: 'oloid' }),
    ]);
    expect(lines[0]?.removeAt.getTime()).toBeGreaterThan(Date.now() + 30 * 86_400_000);
  });

  it('POST /batches lets a bad request fail alone', async () => {
    const bad = { custom_id: 'bad', body: { messages: [{ role: 'user', content: 'x'.repeat(16_001) }] } };
    const { status, body } = await api('post', '/batches', { requests: [itemOf('good'), bad, 7, { body: {} }] });

    expect([status, body.status, body.request_counts]).toEqual([
      202,
      'in_progress',
      { total: 4, completed: 0, failed: 3 },
    ]);
    const results = await resultsOf(service, tenant.key, String(body.id));
    expect(results.map(({ custom_id: id, error }) => [id, error?.['code'], error?.['param']])).toEqual([
      ['bad', 'message_too_long', 'body.messages[0].content'],
      [null, 'invalid_request', 'requests[2]'],
      [null, 'invalid_request', 'custom_id'],
    ]);
    for (const { request_id: requestId, error } of results) {
      expect(error).toMatchObject({ type: 'invalid_request_error', request_id: requestId });
      expect(requestId).toMatch(/^req_/);
    }
    expect((await linesOf(body.id)).filter(({ requestJson }) => requestJson !== undefined)).toHaveLength(1);
  });

  it('names the line of an NDJSON body that is broken, and skips blank ones', async () => {
    const body = `${JSON.stringify(itemOf('a'))}\r\n\n  \n{"custom_id":"b",\n${JSON.stringify(itemOf('c'))}\n`;
    const response = await postBatch(service, tenant.key, body, { 'Content-Type': 'application/x-ndjson' });

    expect(response.body.request_counts).toEqual({ total: 3, completed: 0, failed: 1 });
    const [result] = await resultsOf(service, tenant.key, String(response.body.id));
    expect(result).toMatchObject({ custom_id: null, error: { message: 'Line 4 is not valid JSON.' } });
  });

  it.each<[string, unknown[], { param: string; rule: string }]>([
    ['no object', [null], { param: 'requests[0]', rule: '`requests[0]` must be a JSON object.' }],
    ['no custom_id', [{ body: {} }, null], { param: 'requests[0].custom_id', rule: '`requests[0]`: `custom_id`' }],
    [
      'a bad body',
      [{ custom_id: 'a', body: { messages: [] } }],
      { param: 'requests[0].body.messages', rule: '`requests[0]`: `body.messages`' },
    ],
  ])('refuses a batch without a valid request, of which nothing is stored: %s', async (_what, requests, expected) => {
    const refused = refusalOf(await api('post', '/batches', { requests }));

    expect(refused).toMatchObject({ status: 400, code: 'invalid_request', param: expected.param });
    expect(refused.message).toContain('No request of the batch is valid.');
    expect(refused.message).toContain(expected.rule);
    expect(await storedOf(service, tenant)).toEqual([0, 0]);
  });

  it('refuses ten thousand invalid lines, and stores the invalid ones in front of a valid one', async () => {
    const refused = refusalOf(await postLines(service, tenant.key, Array(10_000).fill({ custom_id: 7 })));
    expect(refused).toMatchObject({ status: 400, param: 'custom_id', message: expect.stringContaining('Line 1') });
    expect(await storedOf(service, tenant)).toEqual([0, 0]);

    const { body } = await postLines(service, tenant.key, [...Array<null>(450).fill(null), itemOf('good')]);
    expect(body.request_counts).toEqual({ total: 451, completed: 0, failed: 450 });
    expect(await storedOf(service, tenant)).toEqual([1, 451]);
  });

  it('counts calls that are refused, too: their bodies were read', async () => {
    for (let count = 0; count < 10; count += 1) expect((await postLines(service, tenant.key, [null])).status).toBe(400);

    expect((await postLines(service, tenant.key, itemsOf(1))).status).toBe(429);
  });

  it('takes ten batches a minute and key', async () => {
    const post = () => postLines(service, tenant.key, itemsOf(1));
    for (let count = 0; count < 10; count += 1) expect((await post()).status).toBe(202);

    const refused = refusalOf(await post());

    expect(refused).toMatchObject({
      status: 429,
      code: 'rpm_exceeded',
      message: expect.stringContaining('POST /batches'),
    });
    expect(refused.retryAfter).toBeGreaterThan(30);
    expect((await api('get', '/batches')).status).toBe(200);
  });

  it.each([
    ['requests', { total: 500_000, bytes: 1 }],
    ['bytes', { total: 1, bytes: 5 * 1024 ** 3 }],
  ])('is 409 where as many %s as allowed are stored, in batches that have ended, too', async (_what, held) => {
    const { body } = await postLines(service, tenant.key, itemsOf(1));
    const owner = await service.startTenant();
    await service.models.batches.updateOne(
      { _id: body.id },
      { ...held, tenantId: owner.tenantId, status: 'completed' },
    );

    const refused = refusalOf(await postLines(service, owner.key, itemsOf(1)));

    expect(refused).toMatchObject({
      status: 409,
      code: 'conflict',
      message: expect.stringContaining('500000 requests or 5 GiB'),
    });
  });

  it('counts one towards the limit, however many requests it has', async () => {
    const { key } = await service.startTenant({ key: { rpm: 2, mode: 'test' } });
    const responses = [await postLines(service, key, itemsOf(5)), await postLines(service, key, itemsOf(5))];

    expect(responses.map(({ status, body }) => [status, body.mode])).toEqual([
      [202, 'test'],
      [202, 'test'],
    ]);
    expect(refusalOf(await postLines(service, key, itemsOf(1)))).toMatchObject({ status: 429, code: 'rpm_exceeded' });
  });

  it('is in the audit log, and so is its cancel, once', async () => {
    const owner = await service.startTenant();
    const call = apiOf(service, owner.key);
    const { body } = await call('post', '/batches', { requests: itemsOf(2) });
    await call('post', `/batches/${String(body.id)}/cancel`);
    await call('post', `/batches/${String(body.id)}/cancel`);

    const log = await call('get', '/compliance/audit_log?limit=2');
    expect(log.body.data).toEqual([
      expect.objectContaining({ action: 'batch.cancelled', target: body.id, actor: owner.keyId }),
      expect.objectContaining({ action: 'batch.created', target: body.id, details: { requests: 2 } }),
    ]);
  });
});

describe('GET /batches', () => {
  it('is read in pages, newest first, of one tenant alone', async () => {
    const owner = await service.startTenant();
    const call = apiOf(service, owner.key);
    const ids: string[] = [];
    for (let count = 0; count < 3; count += 1)
      ids.unshift(String((await call('post', '/batches', { requests: itemsOf(1) })).body.id));

    const first = await call('get', '/batches?limit=2');
    const rest = await call('get', `/batches?limit=2&after=${String(first.body.last_id)}`);

    expect(first.body).toMatchObject({ object: 'list', has_more: true, first_id: ids[0], last_id: ids[1] });
    expect([...first.body.data, ...rest.body.data].map(({ id }: { id: string }) => id)).toEqual(ids);
    expect(rest.body.has_more).toBe(false);
  });

  it('refuses a cursor that is another tenant’s', async () => {
    const other = apiOf(service, (await service.startTenant()).key);
    expect(refusalOf(await other('get', `/batches?after=${await makeBatch()}`))).toMatchObject({
      status: 400,
      param: 'after',
    });
  });

  it.each(['batch_1', 'batch_000000000000000000000000', '%00', 'x'])('GET /batches is 404 for %s', async (id) => {
    for (const [method, path] of [
      ['get', ''],
      ['get', '/results'],
      ['post', '/cancel'],
    ] as const)
      expect(refusalOf(await api(method, `/batches/${id}${path}`))).toMatchObject({ status: 404, code: 'not_found' });
  });
});

describe('POST /batches/{id}/cancel', () => {
  it('asks for the end of a batch that runs, as often as it is sent', async () => {
    const id = await makeBatch();

    const first = await api('post', `/batches/${id}/cancel`);
    const second = await api('post', `/batches/${id}/cancel`);

    expect([first.status, first.body.status]).toEqual([200, 'cancelling']);
    expect(first.body.cancelled_at).toEqual(expect.any(Number));
    expect(second.body).toEqual(first.body);
    expect((await api('get', `/batches/${id}`)).body).toEqual(first.body);
  });

  it('admits no line from then on, before whoever sends them has heard of it', async () => {
    const id = await makeBatch();
    const row = await service.models.batches.findById(id).lean();
    const isClosed = () => service.redis.exists(service.keyspace.shard(row?.shard ?? 0).closedBatch(id));

    expect(await isClosed()).toBe(0);
    await api('post', `/batches/${id}/cancel`);
    expect(await isClosed()).toBe(1);
  });

  it.each(['completed', 'failed', 'expired', 'cancelled'] as const)(
    'POST /batches/{id}/cancel leaves a batch as it is that is %s',
    async (status) => {
      const id = await makeBatch();
      await service.models.batches.updateOne({ _id: id }, { $set: { status, endedAt: Date.now(), waitingFor: 'tpm' } });
      const before = (await api('get', `/batches/${id}`)).body;

      const { status: code, body } = await api('post', `/batches/${id}/cancel`);

      expect([code, body]).toEqual([200, before]);
      expect(body).toMatchObject({ status, cancelled_at: null, waiting_for: null, completed_at: expect.any(Number) });
    },
  );
});
