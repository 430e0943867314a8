import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, errorOf, parseSse, postChat, postStream, textOf } from '../../support/chat.ts';
import { openStream } from '../../support/stream-client.ts';
import { useService } from '../../support/use-service.ts';

describe('Idempotency-Key', () => {
  const service = useService();
  afterEach(() => {
    service.provider.restore();
  });

  it('makes one provider call of many parallel calls, complete and streamed', async () => {
    service.provider.change({ first_token_ms: 200 });
    service.provider.reset();
    const { key } = await service.startTenant();
    const body = chatOf('Once only');

    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        (index % 2 === 0 ? postChat : postStream)(service.app, key, body).set('Idempotency-Key', 'order-1'),
      ),
    );

    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(service.provider.stats().calls).toBe(1);
    const said = answers.map(({ body: answer }) => {
      if (typeof answer !== 'string') return `${answer.id} ${answer.choices[0].message.content}`;
      const events = parseSse(answer);
      return `${String(events[0]?.chunk?.['id'])} ${textOf(events)}`;
    });
    expect(new Set(said).size).toBe(1);
    expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === 'true')).toHaveLength(29);
  });

  it('a repeated stream goes on behind Last-Event-ID, running and ended', async () => {
    service.provider.change({ chunks: 12, chunk_ms: 40 });
    const { key } = await service.startTenant();
    const ask = (headers = {}) => openStream(service.url, key, chatOf('Cut'), { 'Idempotency-Key': 'cut', ...headers });
    const askBehind = async (id: number | string) => {
      const { status, end } = await ask({ 'Last-Event-ID': String(id) });
      return { status, text: await end() };
    };
    const cut = await ask();
    await cut.until('id: 3\n');
    cut.leave();

    const running = await askBehind(3);

    const whole = await (await ask()).end();
    const behind = (id: number) => whole.slice(whole.indexOf(`id: ${id + 1}\n`));
    expect(running).toEqual({ status: 200, text: behind(3) });
    expect(await askBehind(7)).toEqual({ status: 200, text: behind(7) });
    const last = parseSse(whole).length;
    expect(await askBehind(last)).toEqual({ status: 200, text: '' });
    for (const none of [last + 1, 'x']) {
      const { status, text } = await askBehind(none);
      expect([status, JSON.parse(text)]).toMatchObject([400, { error: { code: 'invalid_request' } }]);
    }
  });

  it('a first call has its stream from the start, whatever Last-Event-ID says', async () => {
    const { key } = await service.startTenant();
    const answer = await postStream(service.app, key, chatOf('New')).set('Last-Event-ID', '3');
    expect(parseSse(String(answer.body))[0]?.id).toBe(1);
  });

  it('Idempotency-Key replays the answer by each chat route', async () => {
    const { key } = await service.startTenant();
    const body = chatOf('Any way', { model: 'mobius', entity_id: 'e', subject: 's', grade: '5', metadata: { a: 1 } });
    const ask = (path: string, name: string) =>
      request(service.app)
        .post(`/platform/v1${path}`)
        .auth(key, { type: 'bearer' })
        .set('Idempotency-Key', name)
        .send(body);

    for (const [first, second] of [
      ['/chat', '/chat/completions'],
      ['/chat/completions', '/chat'],
    ] as const) {
      const answer = await ask(first, first);
      expect((await ask(second, first)).body).toEqual(answer.body);
    }
  });

  it('Idempotency-Key runs again after a failure without text', async () => {
    service.provider.change({ fail: 'status', status: 400 });
    const { key } = await service.startTenant();
    const failed = await postChat(service.app, key, chatOf('Retry')).set('Idempotency-Key', 'c');
    expect(failed.status).toBe(400);
    service.provider.restore();

    const response = await postChat(service.app, key, chatOf('Retry')).set('Idempotency-Key', 'c');

    expect(response.status).toBe(200);
    expect(response.headers['idempotent-replayed']).toBeUndefined();
  });

  it('is another key for another tenant, and must have 1 to 255 characters', async () => {
    const [one, two] = [await service.startTenant(), await service.startTenant()];
    await postChat(service.app, one.key, chatOf('Mine')).set('Idempotency-Key', 'd');

    const other = await postChat(service.app, two.key, chatOf('Yours')).set('Idempotency-Key', 'd');

    expect(other.status).toBe(200);
    for (const bad of ['', 'x'.repeat(256)]) {
      const response = await postChat(service.app, one.key, chatOf('Mine')).set('Idempotency-Key', bad);
      expect(response.status).toBe(400);
      expect(errorOf(response)['param']).toBe('Idempotency-Key');
    }
    const longest = await postChat(service.app, one.key, chatOf('Mine')).set('Idempotency-Key', 'x'.repeat(255));
    expect(longest.status).toBe(200);
  });
});
