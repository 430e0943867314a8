import { beforeEach, expect, it } from '@jest/globals';

import { createLeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import { createInflight } from '../../../shared/requests/overdue.ts';
import { clockedRedis, setClock } from '../../support/clocked-redis.ts';
import { LEASE_MS, needs, openRequestLab, RATE, REQUEST_TIMEOUT_MS, SHARD } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { useEach } from '../../support/use-service.ts';

/** By how much Redis's clock was put back: what it was told before lies so far ahead. */
const BACK_MS = 3_600_000;
const LOOKED_AT = 100;
/** Of the lab: for how long a request may be without readers. */
const GRACE_MS = 30_000;

const lab = useEach('lab', openRequestLab);
let request: LabRequest;
let lock: string;
beforeEach(async () => {
  request = await lab.admit();
  await lab.run(request, 1);
  lock = `${lab.keys.job('interactive', request.requestId)}:lock`;
  await lab.redis.set(lock, 'worker', 'PX', LEASE_MS + BACK_MS);
  await lab.redis.hincrby(lab.keys.record(request.requestId), 'leased', BACK_MS);
  await lab.redis.zadd(lab.keys.inflight, 'XX', Date.now() + LEASE_MS + BACK_MS, request.requestId);
});

const overdueAtMs = async () => Number(await lab.redis.zscore(lab.keys.inflight, request.requestId)) - Date.now();

it('looks after a request within a lease, however far ahead its worker had been promised its time', async () => {
  expect(await lab.inflight.overdue(SHARD, LOOKED_AT)).toEqual([]);

  expect(await overdueAtMs()).toBeLessThanOrEqual(LEASE_MS);
  expect(await lab.redis.pttl(lock)).toBeLessThanOrEqual(LEASE_MS);
  // So a later delivery may have it.
  expect(await lab.requests.leaseLeftMs(SHARD, request.requestId)).toBe(0);
});

it('leaves a request to a worker that lives and renews', async () => {
  await lab.inflight.overdue(SHARD, LOOKED_AT);

  expect(await lab.requests.renew(request.ref(1), needs(20))).toMatchObject({ outcome: 'ok' });

  expect(await lab.inflight.overdue(SHARD, LOOKED_AT)).toEqual([]);
  expect(await lab.requests.leaseLeftMs(SHARD, request.requestId)).toBeGreaterThan(0);
  expect((await lab.figures(request.principal)).heldMicro).toBeGreaterThanOrEqual(20 * RATE);
});

it('gives the lead to another process, and no turn before its time', async () => {
  const dead = createLeaderLease(lab.redis, lab.keyspace, 'dead');
  const living = createLeaderLease(lab.redis, lab.keyspace, 'living');
  await dead.hold(SHARD, 'settle');
  await lab.redis.pexpire(lab.keys.lease('settle'), BACK_MS);
  await dead.takeTurn(SHARD, 'reconcile', BACK_MS);

  expect(await living.renew(SHARD, 'settle')).toBe(false);
  expect(await living.hold(SHARD, 'settle')).toBe(true);
  await living.release(SHARD, 'reconcile');
  expect(await living.takeTurn(SHARD, 'reconcile', BACK_MS)).toBe(false);
});

/** A sweep's view of the shard, by a clock that the test sets. */
async function openClocked() {
  const clock = `${lab.keys.tag}:clock`;
  const put = (ms: number) => setClock(lab.redis, clock, { now: Date.now() + ms, passedMs: 0 }, []);
  await put(0);
  return { put, inflight: createInflight(clockedRedis(lab.redis, clock), lab.keyspace, lab.queues) };
}

it('takes nobody’s request while its worker could not have renewed since the clock was set ahead', async () => {
  const { inflight, put } = await openClocked();
  const inflightOfAnother = () =>
    createInflight(clockedRedis(lab.redis, `${lab.keys.tag}:clock`), lab.keyspace, lab.queues);
  const next = inflightOfAnother();
  await inflight.overdue(SHARD, LOOKED_AT);
  await next.watchClock(SHARD);
  await lab.redis.zadd(lab.keys.inflight, 'XX', Date.now() + LEASE_MS, request.requestId);

  await put(BACK_MS);

  expect(await inflight.overdue(SHARD, LOOKED_AT)).toEqual([]);
  // Nor does another worker that leads from now on. One that starts now knows of no other time.
  expect(await next.overdue(SHARD, LOOKED_AT)).toEqual([]);
  expect(await inflightOfAnother().overdue(SHARD, LOOKED_AT)).toHaveLength(1);
});

it('lets BullMQ look for jobs of dead workers again', async () => {
  const mark = `${lab.keys.tag}:interactive:stalled-check`;
  const { inflight, put } = await openClocked();
  await inflight.overdue(SHARD, LOOKED_AT);
  await lab.redis.set(mark, '1', 'PX', 3_000 + BACK_MS);

  await put(-BACK_MS);
  await inflight.overdue(SHARD, LOOKED_AT);

  expect(await lab.redis.pttl(mark)).toBeLessThanOrEqual(LEASE_MS);
});

it('gives a request that waits no more time than it was accepted with', async () => {
  const waiting = await lab.admit();
  const record = lab.keys.record(waiting.requestId);
  for (const field of ['acceptedAt', 'deadline']) await lab.redis.hincrby(record, field, BACK_MS);

  const { remainingMs } = await lab.run(waiting, 1);

  expect(remainingMs).toBeGreaterThan(REQUEST_TIMEOUT_MS - 5_000);
  expect(remainingMs).toBeLessThanOrEqual(REQUEST_TIMEOUT_MS);
});

it('ends a request that nobody reads within the grace, although its last reader had been promised more time', async () => {
  const record = lab.keys.record(request.requestId);
  const reader = Object.keys(await lab.redis.hgetall(record)).find((field) => field.startsWith('reader:')) ?? '';
  await lab.redis.hincrby(record, reader, BACK_MS);

  expect(await lab.requests.renew(request.ref(1), needs(20))).toMatchObject({ outcome: 'ok' });

  expect(Number(await lab.redis.hget(record, reader))).toBeLessThanOrEqual(Date.now() + LEASE_MS);
  await lab.redis.hincrby(record, reader, -GRACE_MS - LEASE_MS);
  expect(await lab.requests.renew(request.ref(1), needs(20))).toMatchObject({ outcome: 'cancelled' });
});
