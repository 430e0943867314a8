import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import { startRedis } from '../../../scripts/embedded/redis.ts';
import type { EmbeddedRedis } from '../../../scripts/embedded/redis.ts';
import { chatOf, waitFor, waitUntil } from '../../support/chat.ts';
import { openStream, post, seqsOf } from '../../support/stream-client.ts';
import { useService } from '../../support/use-service.ts';

const CREDITS = 1_000_000;
/** BullMQ's locks and the requests' leases last 10 s. */
const OUTAGE_MS = 12_000;

describe('Redis away for some seconds', () => {
  let dataDir: string;
  let redis: EmbeddedRedis;
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  const startServer = (port?: number) =>
    startRedis({ dataDir, log: () => undefined, ...(port === undefined ? {} : { port }) });
  beforeAll(async () => {
    process.on('unhandledRejection', note);
    dataDir = await mkdtemp(join(tmpdir(), 'parley-redis-away-'));
    redis = await startServer();
  });
  const service = useService(() => ({ env: { REDIS_URL: redis.url } }));
  afterEach(() => {
    service.provider.restore();
  });
  afterAll(async () => {
    await redis.stop();
    await rm(dataDir, { recursive: true, force: true });
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  /** Once nothing is held or waits for settlement: which requests were charged, and whether it all adds up. */
  async function chargedOf(tenantId: string): Promise<Set<string>> {
    const keys = service.keyspace.shard(0);
    const tenant = await waitFor(
      async () => {
        const [inflight, pending] = [
          await service.redis.zcard(keys.inflight),
          await service.redis.hlen(keys.pending(tenantId)),
        ];
        if (inflight > 0 || pending > 0) return undefined;
        const { body } = await service.admin('get', `/tenants/${tenantId}`);
        return body.held === 0 ? body : undefined;
      },
      'rest',
      30_000,
    );
    const rows = await service.models.ledger.find({ tenantId, type: 'usage' }).lean();
    const spent = rows.reduce((sum, row) => sum - row.amountMicro, 0);
    expect(Math.round(tenant.balance * 1_000_000)).toBe(CREDITS * 1_000_000 - spent);
    const ids = rows.map(({ requestId }) => String(requestId));
    expect(new Set(ids).size).toBe(ids.length);
    return new Set(ids);
  }

  it('leaves no request both refused and charged, and no hold, when it only hangs', async () => {
    const { key, tenantId } = await service.startTenant({ credits: CREDITS });
    const answers = Array.from({ length: 60 }, async (_, index) => {
      const response = await post(service.url, key, '/chat', chatOf(`Number ${index}`));
      return { status: response.status, requestId: String(response.headers.get('x-request-id')) };
    });
    await waitUntil(async () => (await service.redis.zcard(service.keyspace.shard(0).inflight)) > 0, 'an admission');
    process.kill(redis.pid, 'SIGSTOP');
    setTimeout(() => process.kill(redis.pid, 'SIGCONT'), 3_000);

    const settled = await Promise.all(answers);

    const answered = settled.filter(({ status }) => status === 200).map(({ requestId }) => requestId);
    const refused = settled.filter(({ status }) => status !== 200);
    expect(refused.filter(({ status }) => status !== 503)).toEqual([]);
    expect(await chargedOf(tenantId)).toEqual(new Set(answered));
  });

  it('lets running streams end, charged once each, after it was away for longer than locks and leases last', async () => {
    service.provider.change({ chunks: 40, chunk_ms: 100 });
    const { key, tenantId } = await service.startTenant({ credits: CREDITS });
    const streams = await Promise.all(
      Array.from({ length: 20 }, (_, index) => openStream(service.url, key, chatOf(`Stream ${index}`))),
    );
    await waitUntil(() => streams.every(({ read }) => read.text !== ''), 'text of every stream');
    const port = Number(new URL(redis.url).port);
    redis.kill();
    await redis.exited;

    const askedAt = performance.now();
    const meanwhile = await post(service.url, key, '/chat', chatOf('Are you there?'));
    expect(meanwhile.status).toBe(503);
    expect(performance.now() - askedAt).toBeLessThan(2_000);
    await redis.stop();
    await pause(OUTAGE_MS);
    redis = await startServer(port);
    const reads = await Promise.all(streams.map(({ ended }) => ended));

    for (const read of reads) {
      expect(seqsOf(read)).toEqual(seqsOf(read).map((_, index) => index + 1));
      expect([read.finishReason, read.isDone]).toEqual(['stop', true]);
    }
    expect(await chargedOf(tenantId)).toEqual(new Set(streams.map(({ requestId }) => requestId)));
    expect((await post(service.url, key, '/chat', chatOf('And now?'))).status).toBe(200);
  });
});
