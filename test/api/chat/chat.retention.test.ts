import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import {
  chatOf,
  choiceOf,
  errorOf,
  ledgerOf,
  parseSse,
  postChat,
  postStream,
  readText,
  requestIdOf,
  textOf,
  waitFor,
  waitUntil,
} from '../../support/chat.ts';
import { findEverywhere } from '../../support/search-stores.ts';
import { openStream } from '../../support/stream-client.ts';
import { useService } from '../../support/use-service.ts';
import { apiOf } from '../../support/tenant-api.ts';

const WORD = 'Quetzalcoatl';
const DAY_SECONDS = 86_400;
/** Its beginning is shown at once; the end of a short one may be held back. */
const LONG = { messages: [{ role: 'user', content: `${WORD} built bridges over rivers. `.repeat(8) }] };
const said = (more: object = {}) => chatOf(`Tell me of ${WORD}.`, { metadata: { god: WORD }, ...more });

describe('a tenant that keeps nothing', () => {
  const service = useService();
  afterEach(() => {
    service.provider.restore();
  });

  const start = () => service.startTenant({ credits: 100_000, tenant: { retention_seconds: 0 } });
  const echo = (more: object = {}) => {
    service.provider.change({ echo: true, ...more });
  };
  const get = (key: string, path: string) =>
    request(service.app).get(`/platform/v1${path}`).auth(key, { type: 'bearer' });

  /** At once but for the one command that the ingress sends when it has the end. */
  async function expectNothingLeft(): Promise<void> {
    await waitUntil(async () => (await findEverywhere(service, [WORD])).length === 0, 'it to go', 1_000);
  }

  it.each([
    ['complete', {}, {}],
    ['with memory', { entity_id: 'pupil' }, {}],
    ['under an Idempotency-Key', {}, { 'Idempotency-Key': 'once' }],
    ['asked for asynchronously', {}, { Prefer: 'respond-async' }],
  ])('has nothing left of an answer: %s', async (_name, more, headers) => {
    echo();
    const { key } = await start();

    const response = await postChat(service.app, key, said(more)).set(headers);

    expect(response.status).toBe(200);
    expect(response.body.choices[0].message.content).toContain(WORD);
    expect(response.body.metadata).toEqual({ god: WORD });
    await expectNothingLeft();
    await ledgerOf(service, response);
    await expectNothingLeft();
  });

  it('has nothing left of a stream, and the client has all of it', async () => {
    echo({ chunks: 12, chunk_ms: 20 });
    const { key } = await start();

    const response = await postStream(service.app, key, said({ entity_id: 'pupil' })).set('Idempotency-Key', 'stream');

    const events = parseSse(String(response.body));
    expect(textOf(events)).toContain(WORD);
    expect(events.at(-1)?.chunk).toBeUndefined();
    await expectNothingLeft();
  });

  it('has nothing left of what failed, was flagged or was cancelled', async () => {
    const { key } = await start();
    const flagged = said({ messages: [{ role: 'user', content: `${WORD}, I will kill you` }] });
    expect((await postChat(service.app, key, flagged).set('Idempotency-Key', 'a')).status).toBe(400);
    service.provider.change({ fail: 'status', status: 400 });
    expect((await postChat(service.app, key, said())).status).toBeGreaterThanOrEqual(400);
    service.provider.restore();
    echo({ first_token_ms: 600_000 });
    const cancelled = postChat(service.app, key, said()).then((response) => response);
    const id = await waitFor(
      async () => (await service.redis.zrange(service.keyspace.shard(0).inflight, '0', '-1'))[0],
      'it',
    );
    await waitFor(() => service.provider.request(id), 'the provider call');

    const { status, body } = await request(service.app)
      .post(`/platform/v1/chat/${id}/cancel`)
      .auth(key, { type: 'bearer' });

    expect([status, body.status]).toEqual([200, 'cancelled']);
    expect((await cancelled).status).toBe(409);
    await expectNothingLeft();
  });

  it('has nothing left where nobody reads any more', async () => {
    // It runs on until everything has been searched, and a chunk holds the whole word.
    echo({ chunks: 20, chunk_ms: 225 });
    const tenant = { retention_seconds: 0, on_disconnect: 'finish' };
    const { key } = await service.startTenant({ tenant });
    const stream = await openStream(service.url, key, said(LONG));
    await stream.until('data: ');
    // The search would find it afterwards, too.
    expect(await findEverywhere(service, [WORD])).toEqual(['redis:b', 'redis:r', 'redis:s']);
    stream.leave();

    const id = stream.requestId;
    await waitFor(() => service.models.ledger.findOne({ requestId: id }).lean(), 'the ledger entry');
    await expectNothingLeft();
  });

  it('answers 410 to whoever resumes, looks up or repeats a request that has ended, and runs it once', async () => {
    echo();
    const { key } = await start();
    const first = await postChat(service.app, key, said()).set('Idempotency-Key', 'once');
    const id = requestIdOf(first);
    service.provider.reset();

    const again = await postChat(service.app, key, said()).set('Idempotency-Key', 'once');
    const other = await postChat(service.app, key, chatOf('Something else')).set('Idempotency-Key', 'once');
    const resumed = await get(key, `/chat/stream/${id}`).set('Last-Event-ID', '1');
    const found = await get(key, `/chat/${id}`);

    for (const response of [again, other, resumed, found]) {
      expect(response.status).toBe(410);
      expect(errorOf(response)).toMatchObject({ code: 'gone' });
    }
    expect(service.provider.stats().calls).toBe(0);
    await ledgerOf(service, first);
    expect((await get(key, `/chat/${id}`)).status).toBe(410);
  });

  it('is resumed while the answer grows', async () => {
    echo({ chunks: 20, chunk_ms: 80 });
    const { key } = await start();
    const stream = await openStream(service.url, key, said(LONG));
    await stream.until('data: ');
    const id = stream.requestId;

    const resumed = await get(key, `/chat/stream/${id}`).buffer(true).parse(readText);

    expect(resumed.status).toBe(200);
    const events = parseSse(String(resumed.body));
    expect(textOf(events)).toContain(WORD);
    expect(choiceOf(events.at(-2)?.chunk).finish_reason).toBe('stop');
    expect(await stream.end()).toBe(resumed.body);
    await expectNothingLeft();
  });

  it('remembers no conversation, and still uses what is set for the entity', async () => {
    const { key } = await start();
    const api = apiOf(service, key);
    await api('post', '/entities', { entity_id: 'pupil', subject: 'Physics' });
    await postChat(service.app, key, said({ entity_id: 'pupil' }));
    await postChat(service.app, key, said({ entity_id: 'unknown' }));

    expect((await api('get', '/entities/pupil/history')).body.data).toEqual([]);
    expect((await api('get', '/entities/unknown')).status).toBe(404);
  });

  it('has no batches', async () => {
    const { key } = await start();

    const response = await apiOf(service, key)('post', '/batches', { requests: [{ custom_id: 'a', body: said() }] });

    expect(response.status).toBe(409);
    expect(errorOf(response)['message']).toContain('retention_seconds is 0');
    await expectNothingLeft();
  });
});

describe('a tenant with a retention of its own', () => {
  const service = useService();
  const get = (key: string, path: string) =>
    request(service.app).get(`/platform/v1${path}`).auth(key, { type: 'bearer' });

  it.each([
    ['ordinary', {}],
    ['under an Idempotency-Key', { 'Idempotency-Key': 'once' }],
  ])('has answers for so long, and not longer: %s', async (_name, headers) => {
    const { key } = await service.startTenant({ tenant: { retention_seconds: 2 } });
    const id = requestIdOf(await postChat(service.app, key, said()).set(headers));

    expect((await get(key, `/chat/${id}`)).status).toBe(200);
    await waitUntil(async () => (await get(key, `/chat/${id}`)).status === 410, '410', 5_000);
    expect(await findEverywhere(service, [WORD])).not.toContain('mongo:answers');
  });

  it('has answers in MongoDB that stay longer than Redis keeps them', async () => {
    const { key } = await service.startTenant({ tenant: { retention_seconds: 7 * DAY_SECONDS } });
    const response = await postChat(service.app, key, said());
    const id = requestIdOf(response);
    const row = await waitFor(
      async () => (await service.models.answers.findById(id).lean()) ?? undefined,
      'the answer',
    );

    expect(row.expiresAt.getTime() / 1000).toBeCloseTo(Date.now() / 1000 + 7 * DAY_SECONDS, -2);
    const keys = service.keyspace.shard(0);
    await service.redis.unlink(keys.record(id), keys.stream(id), keys.answer(id));
    expect((await get(key, `/chat/${id}`)).body.response).toEqual(response.body);
  });

  it('is set by the administrator, from 0 to 30 days, and taken back', async () => {
    const { tenantId } = await service.startTenant({ tenant: { retention_seconds: 60 } });
    const path = `/tenants/${tenantId}`;

    expect((await service.admin('get', path)).body.retention_seconds).toBe(60);
    expect((await service.admin('patch', path, { retention_seconds: 0 })).body.retention_seconds).toBe(0);
    expect((await service.admin('patch', path, { retention_seconds: null })).body.retention_seconds).toBeNull();
    for (const wrong of [-1, 30 * DAY_SECONDS + 1, 1.5, '60'])
      expect((await service.admin('patch', path, { retention_seconds: wrong })).status).toBe(400);
  });
});
