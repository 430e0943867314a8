import { beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, waitFor } from '../support/chat.ts';
import { openLiveStream, post } from '../support/live-stream.ts';
import { startService } from '../support/service.ts';
import { useService } from '../support/use-service.ts';

/** A reader looks after its request every 5 s. */
const LIMIT_MS = 8_000;

describe('a request that Redis has lost', () => {
  let key: string;
  let tenantId: string;
  // Nobody works: what is lost cannot be ended by anybody else.
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    ({ key, tenantId } = await service.startTenant());
  });

  /** As a Redis that comes back empty, as far as this request is concerned. */
  async function lose(): Promise<void> {
    const keys = service.keyspace.shard(0);
    const requestId = await waitFor(
      async () => (await service.redis.zrange(keys.inflight, '0', '0'))[0],
      'the admission',
    );
    await waitFor(
      async () => ((await service.redis.exists(keys.body(requestId))) === 1 ? true : undefined),
      'its body',
    );
    expect(await service.redis.hget(keys.record(requestId), 'tenant')).toBe(tenantId);
    await service.redis.del(keys.record(requestId), keys.stream(requestId), keys.body(requestId));
    await service.redis.zrem(keys.inflight, requestId);
  }

  it.each(['/chat', '/chat/stream'])(
    'a request that Redis has lost is answered 503 to whoever waits for %s',
    async (path) => {
      const start = performance.now();
      const waiting = post(service.url, key, path, chatOf('Hi'));
      await lose();

      const response = await waiting;

      expect(response.status).toBe(503);
      expect(response.headers.get('retry-after')).toBe('1');
      expect(await response.json()).toMatchObject({ error: { code: 'model_unavailable', type: 'overloaded_error' } });
      expect(performance.now() - start).toBeLessThan(LIMIT_MS);
    },
  );

  it('ends a stream that has begun with the typed error, numbered on, and without [DONE]', async () => {
    const other = await startService();
    try {
      other.provider.change({ chunks: 400, chunk_ms: 50, tokens: 400 });
      const { key: otherKey } = await other.startTenant();
      const stream = await openLiveStream(other.url, otherKey, chatOf('A long story'));
      await waitFor(() => (stream.read.text.length > 0 ? true : undefined), 'the first text');
      const keys = other.keyspace.shard(0);
      await other.redis.del(keys.record(stream.requestId), keys.stream(stream.requestId), keys.body(stream.requestId));

      const read = await stream.ended;

      expect(read).toMatchObject({ finishReason: 'error', errorCode: 'model_unavailable', isDone: false });
      expect(read.ids).toEqual(read.ids.map((_, index) => index + 1));
    } finally {
      await other.close();
    }
  });
});
