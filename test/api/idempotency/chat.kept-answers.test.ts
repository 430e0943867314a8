import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, errorOf, parseSse, postChat, postStream, waitFor, waitUntil } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

const KEY = 'order-1';

describe('an answer that is kept for a day', () => {
  const service = useService();
  afterEach(() => {
    service.provider.restore();
  });

  const get = (key: string, path: string) =>
    request(service.app).get(`/platform/v1${path}`).auth(key, { type: 'bearer' });

  /** Resolves when MongoDB has the answer, and Redis is to keep it no longer than any other. */
  async function kept(requestId: string): Promise<void> {
    const record = service.keyspace.shard(0).record(requestId);
    await waitUntil(async () => {
      const leftMs = await service.redis.pttl(record);
      return leftMs > 0 && leftMs <= 900_000;
    }, 'the kept answer');
  }

  /** Redis lets the answer go; `whole`: it comes back empty, so that not even the Idempotency-Key is known. */
  async function forget(requestId: string, { whole = false } = {}): Promise<void> {
    const keys = service.keyspace.shard(0);
    await service.redis.unlink(keys.record(requestId), keys.stream(requestId), keys.answer(requestId));
    if (whole) await service.redis.unlink(...(await service.redis.keys(keys.idempotency('*'))));
  }

  it.each([
    ['when Redis has let the answer go', false],
    ['when Redis has come back empty', true],
  ])('is the same under its Idempotency-Key, without another call, %s', async (_name, whole) => {
    const { key } = await service.startTenant();
    const body = chatOf('Once only', { metadata: { order: 7 } });
    const first = await postChat(service.app, key, body).set('Idempotency-Key', KEY);
    await kept(String(first.body.id));
    await forget(String(first.body.id), { whole });
    service.provider.reset();

    const again = await postChat(service.app, key, body).set('Idempotency-Key', KEY);
    const streamed = await postStream(service.app, key, body).set('Idempotency-Key', KEY);
    const other = await postChat(service.app, key, chatOf('Something else')).set('Idempotency-Key', KEY);

    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.text).toBe(first.text);
    expect(parseSse(String(streamed.body))[0]?.chunk?.['id']).toBe(first.body.id);
    expect(errorOf(other)).toMatchObject({ code: 'idempotency_mismatch' });
    expect(service.provider.stats().calls).toBe(0);
  });

  it('does not answer for its Idempotency-Key on the second day, however long its tenant keeps it', async () => {
    const { key } = await service.startTenant({ tenant: { retention_seconds: 7 * 86_400 } });
    const send = (text: string) => postChat(service.app, key, chatOf(text)).set('Idempotency-Key', KEY);
    const id = String((await send('Monday')).body.id);
    await kept(id);
    await forget(id, { whole: true });
    const yesterday = String(Date.now() - 86_400_000);
    await service.models.answers.updateOne({ _id: id }, { $set: { 'fields.acceptedAt': yesterday } });
    await get(key, `/chat/${id}`);

    const next = await send('Tuesday');

    expect([next.status, next.headers['idempotent-replayed']]).toEqual([200, undefined]);
    expect((await get(key, `/chat/${id}`)).status).toBe(200);
  });

  it('is the same stream, byte for byte, from any event', async () => {
    service.provider.change({ chunks: 12, chunk_ms: 20 });
    const { key } = await service.startTenant();
    const first = await postStream(service.app, key, chatOf('A story')).set('Idempotency-Key', KEY);
    const id = String(parseSse(String(first.body))[0]?.chunk?.['id']);
    await kept(id);
    await forget(id, { whole: true });

    const whole = await get(key, `/chat/stream/${id}`).buffer(true);
    const rest = await get(key, `/chat/stream/${id}?starting_after=5`).buffer(true);

    expect(whole.text).toBe(first.body);
    expect(rest.text).toBe(String(first.body).slice(String(first.body).indexOf('id: 6\n')));
  });

  it('is looked up after Redis has let it go, by its own tenant only', async () => {
    const { key } = await service.startTenant();
    const stranger = await service.startTenant();
    const accepted = await postChat(service.app, key, chatOf('Later')).set('Prefer', 'respond-async');
    const id = String(accepted.body.id);
    await kept(id);
    const before = await get(key, `/chat/${id}`);
    await forget(id);

    const after = await get(key, `/chat/${id}`);
    await forget(id);
    const foreign = await get(stranger.key, `/chat/${id}`);

    expect(after.status).toBe(200);
    expect(after.body.response).toEqual(before.body.response);
    expect(after.body.timeline).toMatchObject({ accepted_at: before.body.timeline.accepted_at });
    expect(foreign.status).toBe(404);
  });

  it('is looked up where Redis has let it go a moment before its record', async () => {
    const { key } = await service.startTenant();
    const first = await postChat(service.app, key, chatOf('Once only')).set('Idempotency-Key', KEY);
    const id = String(first.body.id);
    await kept(id);
    const keys = service.keyspace.shard(0);
    await service.redis.unlink(keys.stream(id), keys.answer(id));

    const after = await get(key, `/chat/${id}`);

    expect(after.status).toBe(200);
    expect(after.body.response.id).toBe(id);
  });

  it('an answer that is kept for a day is forgotten when its day is over', async () => {
    const { key } = await service.startTenant();
    const body = chatOf('Once only');
    const first = await postChat(service.app, key, body).set('Idempotency-Key', KEY);
    await kept(String(first.body.id));
    const isOver = { $set: { expiresAt: new Date(0) } };
    await service.models.answers.updateOne({ _id: first.body.id }, isOver);
    await service.models.requestIntents.updateOne({ _id: first.body.id }, isOver);
    await forget(String(first.body.id), { whole: true });

    const again = await postChat(service.app, key, body).set('Idempotency-Key', KEY);

    expect(again.status).toBe(200);
    expect(again.headers['idempotent-replayed']).toBeUndefined();
    expect(again.body.id).not.toBe(first.body.id);
  });

  it('is nothing that ended without text: a retry runs', async () => {
    service.provider.change({ fail: 'status', status: 500 });
    const { key } = await service.startTenant();
    const body = chatOf('Once only');
    const first = await postChat(service.app, key, body).set('Idempotency-Key', KEY);
    await kept(String(first.body.error.request_id));
    await forget(String(first.body.error.request_id), { whole: true });
    service.provider.restore();

    const again = await postChat(service.app, key, body).set('Idempotency-Key', KEY);

    expect([first.status, again.status]).toEqual([503, 200]);
  });

  it('an answer that is kept for a day is not kept where nobody asked for it', async () => {
    const { key } = await service.startTenant();
    const first = await postChat(service.app, key, chatOf('Only now'));
    await waitFor(() => service.models.ledger.findOne({ requestId: String(first.body.id) }).lean(), 'the ledger entry');

    await forget(String(first.body.id));

    expect((await get(key, `/chat/${String(first.body.id)}`)).status).toBe(410);
    expect(await service.models.answers.countDocuments({ _id: first.body.id })).toBe(0);
  });
});
