import { afterEach, describe, expect, it } from '@jest/globals';

import { LOST } from '../../../shared/contracts/events.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { createRequestPresence } from '../../../shared/requests/rollback.ts';
import { unlimited } from '../../../shared/redis/time-limits.ts';
import { endingOf, openRequestLab, RETENTION_MS, SHARD } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { sweepOf } from '../../support/sweep.ts';
import { useStarted } from '../../support/use-service.ts';

/** Whoever reads when nothing is kept, see answers.lua. */
const READING_MS = 60_000;

const lab = useStarted('lab', openRequestLab);

/** The caller that waited has left. */
async function leave({ requestId }: LabRequest): Promise<void> {
  const record = lab.keys.record(requestId);
  const readers = (await lab.redis.hkeys(record)).filter((field) => field.startsWith('reader:'));
  await lab.redis.hdel(record, ...readers);
}

describe('a request that is cancelled in line', () => {
  const records = () => createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
  const livesMs = (key: string) => lab.redis.pttl(key);

  it.each([
    ['its tenant’s shorter time', { retentionMs: 5_000 }, 5_000],
    ['the time of an answer that is kept for longer', { retentionMs: 86_400_000 }, 86_400_000],
    ['the service’s own time', {}, RETENTION_MS],
  ])('is kept for %s', async (_, options, keptMs) => {
    const request = await lab.admit(options);
    const { requestId, principal } = request;
    await leave(request);

    await records().cancel(principal, requestId);

    for (const key of [lab.keys.record(requestId), lab.keys.answer(requestId)]) {
      expect(await livesMs(key)).toBeLessThanOrEqual(keptMs);
      expect(await livesMs(key)).toBeGreaterThan(keptMs - 5_000);
    }
  });

  it('takes little of Redis meanwhile: nobody pays for it', async () => {
    const { requestId, principal } = await lab.admit({ retentionMs: 86_400_000 });
    await lab.redis.hset(lab.keys.record(requestId), 'metadata', `{"a":"${'x'.repeat(16_000)}"}`);

    await records().cancel(principal, requestId);

    const names = await lab.redis.keys(`*${requestId}`);
    const bytes = await Promise.all(names.map((name) => lab.redis.memory('USAGE', name, 'SAMPLES', 0)));
    expect(bytes.reduce<number>((sum, each) => sum + Number(each), 0)).toBeLessThan(3_000);
  });

  it('is not taken for lost once its short time is over', async () => {
    const { requestId, principal } = await lab.admit({ retentionMs: 5_000 });
    await records().cancel(principal, requestId);
    await lab.redis.del(lab.keys.record(requestId));

    const presence = createRequestPresence(lab.redis, lab.keyspace, unlimited);

    expect(await presence.look(SHARD, [requestId])).toEqual(['ended']);
  });

  it('leaves nothing but a tombstone where its tenant keeps nothing', async () => {
    const { requestId, principal } = await lab.admit({ retentionMs: 0 });

    await records().cancel({ ...principal, retentionSeconds: 0 }, requestId);

    expect(await lab.redis.hmget(lab.keys.record(requestId), 'gone', 'metadata')).toEqual(['1', null]);
    expect(await lab.redis.exists(lab.keys.body(requestId))).toBe(0);
    // For a reader who is there; its ingress deletes it sooner.
    expect(await livesMs(lab.keys.answer(requestId))).toBeLessThanOrEqual(60_000);
  });
});

describe('a running request that has no body any more', () => {
  it.each([
    ['its tenant’s time', 5_000],
    ['no longer than whoever reads it needs', 0],
  ])('leaves its text for %s', async (_, retentionMs) => {
    const request = await lab.admit({ retentionMs });
    await lab.run(request, 1);
    if (retentionMs > 0) await leave(request);
    await lab.requests.append(request.ref(1), 1, ['Hello']);
    await lab.redis.del(lab.keys.body(request.requestId));
    await lab.redis.zadd(lab.keys.inflight, 'XX', 1, request.requestId);

    const nothing = {
      hasReconnectedRecently: () => false,
      isExhausted: () => false,
      runPipeline: () => Promise.resolve(),
    };
    await sweepOf(lab, 'process', nothing).sweepShard(SHARD);

    const [state, gone] = await lab.redis.hmget(lab.keys.record(request.requestId), 'state', 'gone');
    expect([state, gone]).toEqual(['done', retentionMs === 0 ? '1' : null]);
    const names = [lab.keys.stream(request.requestId), lab.keys.answer(request.requestId)];
    const livesMs = Math.max(...(await Promise.all(names.map((name) => lab.redis.pttl(name)))));
    expect(livesMs).toBeLessThanOrEqual(retentionMs === 0 ? READING_MS : retentionMs);
    // Nothing was charged, so there is nothing to give back to a caller who was told that it was not accepted.
    expect(await lab.admissions.voidRefused(request.requestId, request.principal, LOST)).toBe('done');
  });
});

describe('a running request under an Idempotency-Key whose caller was told that it was not accepted', () => {
  const idempotency = { name: 'a name', fingerprint: 'a print' };
  const voidRefused = ({ requestId, principal }: LabRequest) => lab.admissions.voidRefused(requestId, principal, LOST);
  const flagsOf = ({ requestId }: LabRequest) => lab.redis.hmget(lab.keys.record(requestId), 'cancel', 'unbilled');
  const named = () => lab.redis.exists(lab.keys.idempotency(idempotency.name));
  afterEach(() => lab.redis.del(lab.keys.idempotency(idempotency.name)));

  async function running(retentionMs: number): Promise<LabRequest> {
    const request = await lab.admit({ retentionMs, idempotency });
    await lab.run(request, 1);
    return request;
  }

  it('goes on for the next try where its answer is kept', async () => {
    const request = await running(RETENTION_MS);

    expect(await voidRefused(request)).toBe('running');

    expect([await flagsOf(request), await named()]).toEqual([[null, null], 1]);
  });

  it('stops, costs nothing and leaves its key where its tenant keeps nothing', async () => {
    const request = await running(0);

    expect(await voidRefused(request)).toBe('stopped');

    expect([await flagsOf(request), await named()]).toEqual([['1', '1'], 0]);
    await lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hello', { prompt: 10, completion: 5 }));
    expect(await lab.figures(request.principal)).toMatchObject({ pendingMicro: 0, heldMicro: 0 });
  });

  it('goes on where its tenant keeps nothing and another call reads it', async () => {
    const request = await running(0);
    const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
    await records.attach(request.principal, request.requestId, 'another ingress');

    await voidRefused(request);

    expect([await flagsOf(request), await named()]).toEqual([[null, null], 1]);
  });
});
