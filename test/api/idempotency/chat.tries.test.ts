import { afterEach, describe, expect, it } from '@jest/globals';

import { chatOf, parseSse, waitUntil } from '../../support/chat.ts';
import type { RunningWorker, TestTenant } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';

/** The tries of a call as OpenAI's clients send them: the first says 0. Without a worker, requests wait. */
describe('a client that tries its call again', () => {
  const service = useService({ workers: 0 });
  let worker: RunningWorker | undefined;
  const startWorker = async () => {
    worker = await service.startWorker();
  };
  afterEach(async () => {
    await worker?.close();
    worker = undefined;
    service.provider.restore();
    service.provider.reset();
  });

  const calls = () => service.provider.stats().calls;
  const keys = () => service.keyspace.shard(0);
  const openOf = ({ tenantId }: TestTenant) => service.redis.zrange(keys().open(tenantId), '0', '-1');
  const becomes = (open: number, tenant: TestTenant) =>
    waitUntil(async () => (await openOf(tenant)).length === open, `${open} open requests`);

  interface Asked {
    content?: string;
    path?: string;
    headers?: Record<string, string>;
    signal?: AbortSignal;
  }
  async function ask(
    { key }: TestTenant,
    tries: number,
    { content = 'Hi', path = '', headers = {}, signal }: Asked = {},
  ) {
    const response = await fetch(`${service.url}/platform/v1/chat${path}`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${key}`,
        'Content-Type': 'application/json',
        'X-Stainless-Retry-Count': String(tries),
        ...headers,
      },
      body: JSON.stringify(chatOf(content)),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await response.text();
    const first = path === '/stream' ? parseSse(text)[0]?.chunk : (JSON.parse(text) as Record<string, unknown>);
    const { headers: got, status } = response;
    return { status, text, id: String(first?.['id']), isJoined: got.get('Idempotent-Replayed') === 'true' };
  }

  /** A first try whose request is open. `leave` resolves with the request's id once nobody reads it any more. */
  async function tryFirst(tenant: TestTenant, asked: Asked = {}) {
    const before = await openOf(tenant);
    const controller = new AbortController();
    const answer = ask(tenant, 0, { ...asked, signal: controller.signal });
    answer.catch(() => undefined);
    await becomes(before.length + 1, tenant);
    const id = (await openOf(tenant)).find((one) => !before.includes(one)) ?? '';
    const leave = async () => {
      controller.abort();
      await waitUntil(async () => {
        const fields = Object.entries(await service.redis.hgetall(keys().record(id)));
        const readers = fields.filter(([name]) => name.startsWith('reader:'));
        return readers.every(([, until]) => Number(until) <= Date.now());
      }, 'its reader to be gone');
      return id;
    };
    return { id, answer, leave };
  }

  it('joins its request: one generation, one charge', async () => {
    const tenant = await service.startTenant();
    const left = await (await tryFirst(tenant)).leave();
    const again = ask(tenant, 1);
    await startWorker();

    expect(await again).toMatchObject({ status: 200, id: left, isJoined: true });
    expect(calls()).toBe(1);
    await waitUntil(async () => {
      const booked = await service.models.ledger.countDocuments({ tenantId: tenant.tenantId, type: 'usage' });
      return booked === 1;
    }, 'one charge');
  });

  it('joins it once more, and a third time, while nobody reads it', async () => {
    const tenant = await service.startTenant();
    const first = await tryFirst(tenant);
    await first.leave();
    const controller = new AbortController();
    const second = ask(tenant, 1, { signal: controller.signal });
    second.catch(() => undefined);
    await waitUntil(async () => {
      const joined = await service.redis.hget(keys().record(first.id), 'joined');
      return joined === '1';
    }, 'the second try');
    controller.abort();
    await first.leave();
    const third = ask(tenant, 2);
    await startWorker();

    expect(await third).toMatchObject({ status: 200, id: first.id, isJoined: true });
    expect(calls()).toBe(1);
  });

  it('has a request of its own, however many send the same', async () => {
    const tenant = await service.startTenant();
    const [one, two, kept] = [await tryFirst(tenant), await tryFirst(tenant), await tryFirst(tenant)];
    const left = [await one.leave(), await two.leave()];
    const again = [ask(tenant, 1), ask(tenant, 1)];
    await waitUntil(async () => {
      const marks = await Promise.all(left.map((id) => service.redis.hget(keys().record(id), 'joined')));
      return marks.every((mark) => mark === '1');
    }, 'both to be joined');
    // All three have readers, so this one was refused where it first came.
    const refused = ask(tenant, 1);
    await becomes(4, tenant);
    await startWorker();

    const ids = (await Promise.all(again)).map(({ id }) => id);
    expect(ids.toSorted()).toEqual(left.toSorted());
    expect(await kept.answer).toMatchObject({ id: kept.id, isJoined: false });
    const { id, isJoined } = await refused;
    expect([isJoined, [...left, kept.id].includes(id)]).toEqual([false, false]);
    expect(calls()).toBe(4);
  });

  it('gets the answer that nobody has read, but not one that somebody has', async () => {
    const tenant = await service.startTenant();
    const left = await (await tryFirst(tenant)).leave();
    await startWorker();
    await becomes(0, tenant);

    expect(await ask(tenant, 1)).toMatchObject({ id: left, isJoined: true });
    expect(await ask(tenant, 1)).toMatchObject({ status: 200, isJoined: false });
    expect(await ask(tenant, 2)).toMatchObject({ status: 200, isJoined: false });
    expect(calls()).toBe(3);
  });

  it('has a stream from its start', async () => {
    const tenant = await service.startTenant();
    service.provider.change({ chunks: 6 });
    const left = await (await tryFirst(tenant, { path: '/stream' })).leave();
    const again = ask(tenant, 1, { path: '/stream' });
    await startWorker();

    const { text, ...answer } = await again;
    expect(answer).toEqual({ status: 200, id: left, isJoined: true });
    const events = parseSse(text);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
    expect(events.at(-1)?.chunk).toBeUndefined();
    expect(calls()).toBe(1);
  });

  it('runs anew after a failure', async () => {
    const tenant = await service.startTenant();
    service.provider.change({ fail: 'status', status: 400 });
    await startWorker();
    expect((await ask(tenant, 0)).status).toBe(400);
    service.provider.restore();

    expect(await ask(tenant, 1)).toMatchObject({ status: 200, isJoined: false });
  });

  it('joins no other call: not of another body, path, key or Idempotency-Key, and not before it says so', async () => {
    const [tenant, other] = [await service.startTenant(), await service.startTenant()];
    await (await tryFirst(tenant)).leave();

    const own: [number, Asked][] = [
      [1, { content: 'Another' }],
      [1, { path: '/stream' }],
      [1, { headers: { 'Idempotency-Key': 'explicit' } }],
      [1, { headers: { 'X-Stainless-Retry-Count': 'once' } }],
      [0, {}],
    ];
    const asked = [...own.map(([tries, more]) => ask(tenant, tries, more)), ask(other, 1)];
    await becomes(own.length + 1, tenant);
    await startWorker();

    const joined = (await Promise.all(asked)).map(({ isJoined }) => isJoined);
    expect(joined).toEqual(asked.map(() => false));
  });

  it('joins what runs where the tenant keeps nothing, and nothing remains of the call', async () => {
    const tenant = await service.startTenant({ tenant: { retention_seconds: 0 } });
    const lists = () => service.redis.keys(`${keys().tag}:tries:*`);
    const before = await lists();
    const left = await (await tryFirst(tenant)).leave();
    const again = ask(tenant, 1);
    await startWorker();

    expect(await again).toMatchObject({ status: 200, id: left, isJoined: true });
    expect((await lists()).toSorted()).toEqual(before.toSorted());
    expect(await ask(tenant, 1)).toMatchObject({ status: 200, isJoined: false });
  });
});
