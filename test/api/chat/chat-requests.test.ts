import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, errorOf, parseSse, postChat, postStream, waitFor, waitUntil } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

describe('a request after it was accepted', () => {
  const service = useService();
  afterEach(() => {
    service.provider.restore();
  });

  const get = (key: string, path: string) =>
    request(service.app).get(`/platform/v1${path}`).auth(key, { type: 'bearer' });
  const cancel = (key: string, id: string) =>
    request(service.app).post(`/platform/v1/chat/${id}/cancel`).auth(key, { type: 'bearer' });

  async function startStream(key: string): Promise<{ id: string; end: Promise<request.Response> }> {
    const before = new Set(service.log.lines.length === 0 ? [] : await recordIds());
    const end = postStream(service.app, key, chatOf('Tell me')).then((response) => response);
    const id = await waitFor(async () => (await recordIds()).find((known) => !before.has(known)), 'the request record');
    return { id, end };
  }

  /** What Redis has of a running request; `restore` takes it back there, as a power cut between two writes of its log. */
  async function rememberOf(record: string, stream: string) {
    const [sent, dumps] = await Promise.all([
      service.redis.hget(record, 'lastSeq'),
      Promise.all([record, stream].map(async (name) => [name, await service.redis.dumpBuffer(name)] as const)),
    ]);
    return {
      sent: Number(sent),
      restore: () => Promise.all(dumps.map(([name, dump]) => service.redis.restore(name, 0, dump, 'REPLACE'))),
    };
  }

  async function recordIds(): Promise<string[]> {
    const keys = await service.redis.keys(service.keyspace.shard(0).record('*'));
    return keys.map((name) => name.slice(name.lastIndexOf(':') + 1));
  }

  it('is found with its status, timeline and whole answer', async () => {
    const { key } = await service.startTenant();
    const answer = await postChat(service.app, key, chatOf('Hello', { metadata: { a: 1 } }));

    const found = await waitFor(async () => {
      const response = await get(key, `/chat/${String(answer.body.id)}`);
      return response.body.timeline?.settled_at === null ? undefined : response;
    }, 'settlement');

    expect(found.status).toBe(200);
    expect(found.body).toMatchObject({ id: answer.body.id, object: 'chat.request', status: 'completed', error: null });
    expect(found.body.response).toEqual(answer.body);
    const { timeline } = found.body;
    expect(timeline.attempts).toMatchObject([{ provider: 'simulated', outcome: 'ok' }]);
    expect(timeline.accepted_at).toBeLessThanOrEqual(timeline.started_at);
    expect(timeline.started_at).toBeLessThanOrEqual(timeline.finished_at);
  });

  it('is unknown to another tenant and under a made-up id', async () => {
    const [mine, other] = [await service.startTenant(), await service.startTenant()];
    const answer = await postChat(service.app, mine.key, chatOf('Hello'));

    for (const path of [`/chat/${String(answer.body.id)}`, `/chat/stream/${String(answer.body.id)}`]) {
      const response = await get(other.key, path);
      expect(response.status).toBe(404);
      expect(errorOf(response)).toMatchObject({ code: 'not_found', type: 'not_found_error' });
    }
    expect((await get(mine.key, '/chat/req_nothing')).status).toBe(404);
    expect((await cancel(other.key, String(answer.body.id))).status).toBe(404);
  });

  it('is gone where its answer has expired before its record', async () => {
    const { key } = await service.startTenant();
    const { body } = await postChat(service.app, key, chatOf('Hello'));
    const id = String(body.id);
    await waitFor(() => service.models.ledger.findOne({ requestId: id }).lean(), 'settlement');
    const { stream, answer } = service.keyspace.shard(0);
    await service.redis.unlink(stream(id), answer(id));

    expect(errorOf(await get(key, `/chat/${id}`))).toMatchObject({ code: 'gone' });
  });

  it('takes nothing of the rpm when it is looked up', async () => {
    const { key } = await service.startTenant({ key: { rpm: 5 } });
    const answer = await postChat(service.app, key, chatOf('Hello'));

    for (let count = 0; count < 10; count += 1) {
      const response = await get(key, `/chat/${String(answer.body.id)}`);
      expect(response.headers['x-ratelimit-remaining-requests']).toBe('4');
    }
  });

  it('is read again from any event, byte for byte', async () => {
    service.provider.change({ chunks: 12, chunk_ms: 5 });
    const { key } = await service.startTenant();
    const first = await postStream(service.app, key, chatOf('Hello', { metadata: { a: 1 } }));
    const text = String(first.body);
    const id = String(parseSse(text)[0]?.chunk?.['id']);
    const blocks = text.split(/(?<=\n\n)/);

    for (const position of [0, 1, 7, blocks.length - 1]) {
      const again = await get(key, `/chat/stream/${id}`).set('Last-Event-ID', String(position)).buffer(true);
      expect(again.text).toBe(blocks.slice(position).join(''));
    }
    const bare = await get(key, `/chat/stream/${id}?starting_after=3`).buffer(true);
    expect(bare.text).toBe(blocks.slice(3).join(''));
    expect((await get(key, `/chat/stream/${id}`).set('Last-Event-ID', String(blocks.length))).status).toBe(204);
  });

  it('a request after it was accepted refuses positions that cannot be', async () => {
    const { key } = await service.startTenant();
    const first = await postStream(service.app, key, chatOf('Hello'));
    const id = String(parseSse(String(first.body))[0]?.chunk?.['id']);

    for (const position of ['-1', 'x', '1.5', '']) {
      const response = await get(key, `/chat/stream/${id}?starting_after=${position}`);
      expect(response.status).toBe(400);
      expect(errorOf(response)['code']).toBe('invalid_request');
    }
  });

  it('goes on after Last-Event-ID where a client repeats the address from which it began', async () => {
    const { key } = await service.startTenant();
    const first = await postStream(service.app, key, chatOf('Hello'));
    const text = String(first.body);
    const id = String(parseSse(text)[0]?.chunk?.['id']);

    const again = await get(key, `/chat/stream/${id}?starting_after=1`).set('Last-Event-ID', '3').buffer(true);

    expect(again.text).toBe(text.slice(text.indexOf('id: 4\n')));
  });

  it('is refused behind an event that its ended stream does not have, and says how to read it', async () => {
    const { key } = await service.startTenant();
    const first = await postStream(service.app, key, chatOf('Hello'));
    const events = parseSse(String(first.body));

    const response = await get(key, `/chat/stream/${String(events[0]?.chunk?.['id'])}?starting_after=100000`);

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request' });
    expect(errorOf(response)['message']).toContain(`ended with event ${events.length};`);
  });

  it('goes on behind an event that Redis has lost, once its worker has written it again', async () => {
    service.provider.change({ chunks: 60, chunk_ms: 50, tokens: 60 });
    const { key } = await service.startTenant();
    const { id, end } = await startStream(key);
    const keys = service.keyspace.shard(0);
    const sent = async () => Number(await service.redis.hget(keys.record(id), 'lastSeq'));
    await waitUntil(async () => (await sent()) > 1, 'some text');
    const before = await rememberOf(keys.record(id), keys.stream(id));
    const position = await waitFor(async () => ((await sent()) > before.sent + 3 ? await sent() : undefined), 'more');
    await before.restore();

    const resumed = await get(key, `/chat/stream/${id}`).set('Last-Event-ID', String(position)).buffer(true);

    expect(resumed.status).toBe(200);
    expect(parseSse(resumed.text)).toEqual(parseSse(String((await end).body)).slice(position));
  });

  it('asks to come back for an event that is not there yet', async () => {
    service.provider.change({ first_token_ms: 60_000 });
    const { key } = await service.startTenant();
    const { id, end } = await startStream(key);

    const response = await get(key, `/chat/stream/${id}`).set('Last-Event-ID', '5');

    expect(response.status).toBe(503);
    expect(response.headers['retry-after']).toBe('1');
    await cancel(key, id);
    await end;
  });

  it('ends with what there is when it is cancelled, and is charged for that', async () => {
    service.provider.change({ chunks: 400, chunk_ms: 25 });
    const { key } = await service.startTenant();
    const { id, end } = await startStream(key);
    await waitUntil(async () => (await get(key, `/chat/${id}`)).body.timeline.first_token_at !== null, 'text');

    const response = await cancel(key, id);

    expect(response.body.status).toBe('cancelled');
    const events = parseSse(String((await end).body));
    expect(events.at(-1)?.chunk).toBeUndefined();
    expect(events.at(-2)?.chunk).toMatchObject({ choices: [{ delta: {}, finish_reason: 'cancelled' }] });
    const entry = await waitFor(() => service.models.ledger.findOne({ requestId: id }).lean(), 'the ledger entry');
    expect(entry.estimated).toBe(true);
    expect((await cancel(key, id)).body).toEqual({ ...response.body, timeline: expect.anything() });
  });

  it('ends as 409 when it is cancelled before any text, and is not charged', async () => {
    service.provider.change({ first_token_ms: 60_000 });
    const { key, tenantId } = await service.startTenant();
    const { id, end } = await startStream(key);

    await cancel(key, id);

    const response = await end;
    expect(response.status).toBe(409);
    const { body } = await service.admin('get', `/tenants/${tenantId}`);
    expect(body).toMatchObject({ balance: 1_000_000, held: 0 });
  });

  it('runs without a waiting client when asked for asynchronously', async () => {
    const { key } = await service.startTenant();

    const accepted = await postChat(service.app, key, chatOf('Hello')).set('Prefer', 'respond-async');

    expect(accepted.status).toBe(202);
    const location = String(accepted.headers['location']);
    expect(location).toBe(`/platform/v1/chat/${String(accepted.body.id)}`);
    const done = await waitFor(async () => {
      const response = await get(key, location.replace('/platform/v1', ''));
      return response.body.status === 'completed' ? response.body : undefined;
    }, 'completion');
    expect(done.response.choices[0].message.content.length).toBeGreaterThan(10);
    const stream = await get(key, `/chat/stream/${String(accepted.body.id)}`).buffer(true);
    expect(parseSse(stream.text).at(-1)?.chunk).toBeUndefined();
  });
});
