import { describe, expect, it } from '@jest/globals';

import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { createErasureRepository } from '../../../shared/mongo/compliance/erasure-repository.ts';
import { createReplayLog, watchReturn } from '../../../shared/redis/redis-return.ts';
import { createRequestEraser } from '../../../shared/requests/request-eraser.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import { createEraseDeleted } from '../../../workers/compliance/erase-requests.ts';
import { ENTITY_HASH, useRestoreLab } from '../../support/restore-lab.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { endingOf, LAB_SETTINGS, LEASE_MS, needs, RATE, SHARD } from '../../support/request-lab.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { waitUntil } from '../../support/wait-for.ts';
import { useStarted } from '../../support/use-service.ts';

const { puts, lab } = useRestoreLab();
const mongo = useStarted('mongo', () => openTestMongo(uniqueName('restore-')));

it('a running request that is put back behind a deletion is erased at its end', async () => {
  const principal = await lab.tenant(100 * RATE);
  const { request, ref } = await puts.running(principal);
  const running = { ...ref, envelope: request.envelope };
  await puts.rollBack();
  const erasures = createErasureRepository(mongo);
  const space = { tenantId: principal.tenantId, mode: 'live' } as const;
  await erasures.mark(space, ENTITY_HASH, { seq: ref.facts.seq + 1, now: Date.now() });
  const eraseDeleted = createEraseDeleted({ erasures, eraser: createRequestEraser(lab.redis, lab.keyspace) });
  const log = createRecordingLog();
  const replayLog = createReplayLog({ hasReconnectedRecently: () => false, clock: systemClock, log });
  const requests = createRequestStore(lab.redis, lab.keyspace, {
    ...LAB_SETTINGS,
    replays: { replayLog, eraseDeleted, log },
  });
  expect(await lab.requests.renew(running, needs(10))).toMatchObject({ outcome: 'ok' });

  expect(await requests.finish(running, 0, endingOf(request, 'Hello', { prompt: 10, completion: 5 }))).toBe(true);

  await waitUntil(async () => (await puts.textOf(request)) === '', 'its text to go');
  expect(await puts.charges()).toEqual([request.requestId]);
});

describe('a running request whose worker was cut off from a Redis that lived, and ended meanwhile', () => {
  /** Redis as it has been for a minute; its record has expired, and its worker was away for long. */
  async function cutOff() {
    const outages = watchReturn(lab.redis, lab.keyspace);
    await outages.meet(SHARD).finally(outages.stop);
    await lab.redis.hset(lab.keys.incarnation, 'since', Date.now() - 60_000);
    await lab.redis.hdel(lab.keys.incarnation, 'emptyAt');
    const { request, ref } = await puts.running(await lab.tenant(100 * RATE));
    await lab.redis.del(lab.keys.record(request.requestId));
    const settings = { leaseMs: LEASE_MS, disconnectGraceMs: 30_000, lastAwayMs: () => 40_000 };
    const requests = createRequestStore(lab.redis, lab.keyspace, settings);
    return { request, renew: () => requests.renew({ ...ref, envelope: request.envelope }, needs(10)) };
  }

  it('is not put back: nothing was lost', async () => {
    const { request, renew } = await cutOff();

    expect(await renew()).toEqual({ outcome: 'superseded' });

    expect(await lab.redis.exists(lab.keys.record(request.requestId))).toBe(0);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['that Redis was emptied', () => lab.redis.del(lab.keys.incarnation)],
    ['another server has taken its place', () => lab.redis.hset(lab.keys.incarnation, 'id', 'another')],
  ])('is put back where %s', async (_, lose) => {
    const { renew } = await cutOff();
    await lose();

    expect(await renew()).toMatchObject({ outcome: 'ok' });
  });

  it('is put back where Redis was emptied and a process has started since', async () => {
    const { renew } = await cutOff();
    await lab.redis.del(lab.keys.incarnation, lab.keys.inflight);
    const started = watchReturn(lab.redis, lab.keyspace);
    await started.meet(SHARD).finally(started.stop);
    // The server of the tests is young.
    await lab.redis.hset(lab.keys.incarnation, 'since', Date.now() - 60_000);

    expect(await renew()).toMatchObject({ outcome: 'ok' });
  });

  it('is not put back where its end was noted, whatever became of Redis', async () => {
    const { request, renew } = await cutOff();
    await lab.redis.del(lab.keys.incarnation);
    await lab.redis.set(lab.keys.ended(request.requestId), '1');

    expect(await renew()).toEqual({ outcome: 'superseded' });
  });
});
