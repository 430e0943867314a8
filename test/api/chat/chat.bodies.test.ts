import { once } from 'node:events';
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';

import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { createBatchQueue } from '../../../shared/requests/queue-store.ts';
import { itemsOf, postLines } from '../../support/batch-client.ts';
import { chatOf, postChat, waitUntil } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { useService } from '../../support/use-service.ts';

const PATH = '/platform/v1/chat';
const service = useService();

/** The head of the answer to a request whose body does not come. */
async function answerToHead(key: string, headers: readonly string[]): Promise<string> {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
  const lines = [`POST ${PATH} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', `Authorization: Bearer ${key}`];
  socket.write(`${[...lines, ...headers].join('\r\n')}\r\n\r\n`);
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return bytes.toString();
}

const sendGzip = (key: string, body: object) =>
  request(service.app)
    .post(PATH)
    .auth(key, { type: 'bearer' })
    .set({ 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' })
    .serialize((sent: unknown) => sent as string)
    .send(gzipSync(JSON.stringify(body)) as unknown as string);

const sendChunked = (key: string, body: object) =>
  fetch(service.url + PATH, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: new Blob([JSON.stringify(body)]).stream(),
    duplex: 'half',
  });

describe('a key over its requests a minute', () => {
  it.each([
    ['large', 'Content-Length: 20000000'],
    ['compressed', 'Content-Length: 40\r\nContent-Encoding: br'],
    ['of unknown length', 'Transfer-Encoding: chunked'],
    ['small', 'Content-Length: 40'],
  ])('is answered 429 before its body has come: %s', async (_which, header) => {
    const { key } = await service.startTenant({ tenant: { rpm: 1 } });
    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
    const first = refusalOf(await postChat(service.app, key, chatOf('Hi')));

    const head = await answerToHead(key, [header]);

    expect(head).toMatch(/^HTTP\/1\.1 429 /);
    expect(head).toMatch(/\r\nX-RateLimit-Remaining-Requests: 0\r\n/i);
    const retryAfter = Number(/\r\nRetry-After: (\d+)\r\n/i.exec(head)?.[1]);
    expect(retryAfter).toBeGreaterThan(0);
    expect(retryAfter).toBeLessThanOrEqual(first.retryAfter ?? 0);
    expect(head).toContain(first.message);
  });

  it('is told the longest of its waits, as before: that of its day, and not the minute', async () => {
    const { key } = await service.startTenant({ tenant: { rpm: 1, daily_requests: 1 } });
    await postChat(service.app, key, chatOf('Hi'));
    const first = refusalOf(await postChat(service.app, key, chatOf('Hi')));
    expect(first.message).toContain('1 requests per day');

    const again = refusalOf(await postChat(service.app, key, chatOf('Hi')));

    expect(again).toMatchObject({ status: 429, code: 'rpm_exceeded', message: first.message });
    expect(again.retryAfter).toBeGreaterThan((first.retryAfter ?? 0) - 10);
  });
});

describe('a costly body', () => {
  const large = chatOf('x'.repeat(16_000), { padding: 'y'.repeat(300_000), max_tokens: 1 });

  it('that was refused for its tokens is not read again as long as that holds; a small one is', async () => {
    const { key } = await service.startTenant({ tenant: { rpm: 100, tpm: 2_000 } });
    expect((await postChat(service.app, key, chatOf('Hi', { max_tokens: 1 }))).status).toBe(200);
    const first = refusalOf(await sendGzip(key, large));
    expect(first).toMatchObject({ status: 429, code: 'tpm_exceeded' });

    const head = await answerToHead(key, ['Content-Length: 300000', 'Content-Encoding: gzip']);

    expect(head).toMatch(/^HTTP\/1\.1 429 /);
    expect(head).toContain(first.message);
    expect((await postChat(service.app, key, chatOf('Hi', { max_tokens: 1 }))).status).toBe(200);
  });

  it('joins the request of its Idempotency-Key, although another one was refused for its tokens meanwhile', async () => {
    const { key } = await service.startTenant({ tenant: { rpm: 100, tpm: 2_000 } });
    const first = await sendGzip(key, large).set('Idempotency-Key', 'known');
    expect(first.status).toBe(200);
    expect((await sendGzip(key, large)).status).toBe(429);

    const again = await sendGzip(key, large).set('Idempotency-Key', 'known');

    expect(again.body).toEqual(first.body);
    expect(again.headers['idempotent-replayed']).toBe('true');
    const unknown = ['Content-Length: 300000', 'Content-Encoding: gzip', 'Idempotency-Key: unknown'];
    expect(await answerToHead(key, unknown)).toMatch(/^HTTP\/1\.1 429 /);
  });

  it('does not stand for one of unknown length, which may be small: that is read as far as a small one goes', async () => {
    const { key } = await service.startTenant({ tenant: { rpm: 100, tpm: 2_000 } });
    const small = chatOf('Hi', { max_tokens: 1 });
    expect((await postChat(service.app, key, small)).status).toBe(200);
    const first = refusalOf(await sendGzip(key, large));

    const refused = await sendChunked(key, large);

    expect([refused.status, await refused.json()]).toMatchObject([429, { error: { message: first.message } }]);
    expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('99');
    expect((await sendChunked(key, small)).status).toBe(200);
  });

  it('is not refused for the limit of another endpoint', async () => {
    const { key } = await service.startTenant();
    const upload = () =>
      request(service.app)
        .post('/platform/v1/batches')
        .auth(key, { type: 'bearer' })
        .set({ 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' })
        .serialize((sent: unknown) => sent as string)
        .send(gzipSync('{}') as unknown as string);
    let refused = await upload();
    for (let sent = 1; sent <= BATCH_LIMITS.perMinute; sent += 1) refused = await upload();
    expect(refusalOf(refused)).toMatchObject({ status: 429, code: 'rpm_exceeded' });

    expect((await sendGzip(key, large)).status).toBe(200);
  });

  it.each([{ 'Idempotency-Key': 'k' }, { Prefer: 'respond-async' }])(
    'that is to be kept has 15 MiB: %j',
    async (header) => {
      const { key } = await service.startTenant();
      const url = `data:image/png;base64,${'A'.repeat(15 * 1024 * 1024)}`;
      const content = [{ type: 'image_url', image_url: { url } }];

      const response = await request(service.app)
        .post('/platform/v1/chat/completions')
        .auth(key, { type: 'bearer' })
        .set(header)
        .send({ model: 'mobius', messages: [{ role: 'user', content }] });

      expect(refusalOf(response)).toMatchObject({ status: 400, code: 'invalid_request' });
      expect(refusalOf(response).message).toContain('15 MiB');
      expect(response.headers['x-ratelimit-remaining-requests']).toBeDefined();
    },
  );

  it('that is to be kept waits for the minute of the uploads of its tenant', async () => {
    const tenant = await service.startTenant({ tenant: { rpm: 60 } });
    const { takeWriting } = createBatchQueue(service.redis, service.keyspace);
    const kept = { ...chatOf('Hi'), messages: Array(17).fill({ role: 'user', content: 'x'.repeat(16_000) }) };
    const send = (key: string) =>
      postChat(service.app, tenant.key, kept).set({ Prefer: 'respond-async', 'Idempotency-Key': key });
    const taken = async () => Number(await service.redis.get(service.keyspace.shard(0).writing(tenant.tenantId)));
    expect((await send('first')).status).toBe(202);
    await waitUntil(async () => (await taken()) > 0, 'the count');

    await takeWriting(0, tenant.tenantId, 120_000);

    // A 429 takes nothing, and says nothing of calls that are not kept.
    const full = { status: 429, code: 'rpm_exceeded', limit: 60, remaining: 0 };
    expect(refusalOf(await send('second'))).toMatchObject(full);
    const upload = await postLines(service, tenant.key, itemsOf(1));
    expect(refusalOf(upload)).toMatchObject(full);
    expect(Number(upload.headers['x-ratelimit-reset-tokens'])).toBeGreaterThan(0);
    expect(upload.headers['x-ratelimit-reset-requests']).toBe(upload.headers['retry-after']);
    const { status, headers } = await postChat(service.app, tenant.key, kept);
    expect([status, headers['x-ratelimit-remaining-requests']]).toEqual([200, '58']);
    expect((await postChat(service.app, tenant.key, chatOf('Hi')).set('Idempotency-Key', 'small')).status).toBe(200);
  });
});

describe('calls that wait for one answer', () => {
  afterEach(() => {
    service.provider.restore();
  });

  const CALLS = 40;

  it('hold nothing of their bodies meanwhile', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const usedBytes = () => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const { key } = await service.startTenant({ credits: 10_000_000 });
    service.provider.change({ first_token_ms: 12_000 });
    service.provider.reset();
    // In memory, the one letter makes two bytes of each.
    const messages = Array.from({ length: 26 }, () => ({ role: 'user', content: `${'a'.repeat(15_999)}ж` }));
    const body = Buffer.from(JSON.stringify({ messages, max_tokens: 16 }));
    const send = (path: string) =>
      fetch(service.url + path, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', 'Idempotency-Key': 'large' },
        body,
      });
    const joined = async () =>
      Number(/^parley_admissions_total\{.*verdict="joined".*\} (\d+)$/m.exec(await service.metrics())?.[1] ?? 0);
    const first = send(PATH);
    await waitUntil(() => service.provider.stats().in_flight === 1, 'the call of the provider', 20_000);
    const before = usedBytes();
    const joinedBefore = await joined();

    const others = Array.from({ length: CALLS }, (_, index) => send(index % 2 === 0 ? PATH : `${PATH}/stream`));
    await waitUntil(async () => (await joined()) - joinedBefore === CALLS, 'the calls', 9_000);

    await waitUntil(() => usedBytes() - before < 12_000_000, 'the bodies to go', 10_000);
    for (const answer of await Promise.all([first, ...others])) await answer.text();
  }, 120_000);
});
