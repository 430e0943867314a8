import { expect, it } from '@jest/globals';

import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import type { FinishInput } from '../../../shared/requests/delivery.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { fill, openAdmissionLab } from '../../support/admission-lab.ts';
import { usedOf } from '../../support/use-window.ts';
import { useStarted } from '../../support/use-service.ts';

/** By how much Redis's clock was put back: what was counted before lies so far ahead. */
const BACK_MS = 3_600_000;
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
/** A second that has begun counts until all of it has left. */
const WINDOW_MS = MINUTE_MS + 2_000;
/** Of the lab's keys. */
const SHARD = 2;
/** What the clock of a line adds in a millisecond, see fair-queue.lua. */
const VIRTUAL_TIME_PER_MS = 1_000;
/** An end after a thousand tokens. */
const CANCELLED = {
  status: 'cancelled',
  deltas: [],
  terminal: { finishReason: 'cancelled', usage: { promptTokens: 10, completionTokens: 990 } },
  costMicro: 0,
  retentionMs: 1_000,
  unbilledTokens: 1_000,
} as const satisfies FinishInput;

const lab = useStarted('lab', () => openAdmissionLab({ queueLimit: 10_000 }));

it.each([
  { limit: 'rpm', limits: { rpm: 5 }, ceilings: {}, verdict: 'rpm' },
  { limit: 'chat throttle', limits: { chatRpm: 5 }, ceilings: {}, verdict: 'throttle' },
  { limit: 'tpm', limits: { tpm: 100 }, ceilings: {}, verdict: 'tpm' },
  { limit: 'tenant_rpm', limits: {}, ceilings: { rpm: 5 }, verdict: 'tenant_rpm' },
  { limit: 'tenant_tpm', limits: {}, ceilings: { tpm: 100 }, verdict: 'tenant_tpm' },
])('$limit is free again after a minute, and not before', async ({ limits, ceilings, verdict }) => {
  const key = await lab.key({ ceilings: { rpm: null, tpm: null, inFlight: null, ...ceilings } });
  await fill(() => key.admitWith(limits));
  await key.pass(-BACK_MS);

  const refused = await key.admitWith(limits);

  expect(refused.verdict).toBe(verdict);
  expect(refused.retryAfterMs).toBeGreaterThan(MINUTE_MS - 5_000);
  expect(refused.retryAfterMs).toBeLessThanOrEqual(WINDOW_MS);
  await key.pass(refused.retryAfterMs + 1_000);
  expect((await fill(() => key.admitWith(limits))).admitted).toBe(5);
});

it('a daily limit is free again after a day, however far the clock was ahead', async () => {
  const key = await lab.key();
  const limits = { dailyRequests: 3 };
  await fill(() => key.admitWith(limits));
  await key.pass(-30 * DAY_MS);

  const refused = await key.admitWith(limits);

  expect(refused.verdict).toBe('daily');
  expect(refused.retryAfterMs).toBeLessThanOrEqual(DAY_MS + MINUTE_MS);
  expect((await key.admitWith(limits)).retryAfterMs).toBeLessThanOrEqual(DAY_MS + MINUTE_MS);
  await key.pass(refused.retryAfterMs + MINUTE_MS);
  expect((await fill(() => key.admitWith(limits))).admitted).toBe(3);
});

it('what was counted just before stays in the window, second by second', async () => {
  const key = await lab.key();
  await key.admit();
  await key.pass(30_000);
  await key.admit();
  await key.pass(-BACK_MS);

  await key.admit();
  expect(await usedOf(lab.redis, lab.keys.tokenWindow(key.principal.keyId))).toMatchObject({ requests: 3 });
  await key.pass(35_000);
  await key.admit();

  // The first one was 30 s old as the clock was put back.
  expect(await usedOf(lab.redis, lab.keys.tokenWindow(key.principal.keyId))).toMatchObject({ requests: 3 });
});

it('the window of an address with wrong keys says no more than a minute', async () => {
  const address = newId('req');
  const log = lab.keyspace.shard(0).address(address);
  const ahead = Date.now() + BACK_MS;
  for (let index = 0; index < 10; index += 1) await lab.redis.zadd(log, ahead, `failed ${index}`);

  const refused = await lab.store.countAddress(newId('req'), address);

  expect(refused.retryAfterMs).toBeLessThanOrEqual(MINUTE_MS);
  expect(Number(await lab.redis.zscore(log, 'failed 0'))).toBeLessThan(Date.now() + 1_000);
});

it('tokens of a long answer count as of now where its request was accepted in a time ahead', async () => {
  const key = await lab.key();
  const { keyId, tenantId } = key.principal;
  const requests = createRequestStore(lab.redis, lab.keyspace, { leaseMs: 10_000, disconnectGraceMs: 30_000 });
  const requestId = newId('req');
  await key.admit({ requestId });
  await key.pass(-BACK_MS);
  await key.admit();
  await lab.redis.hincrby(lab.keys.record(requestId), 'acceptedAt', BACK_MS);
  await lab.redis.set(lab.keys.body(requestId), '{}');
  await lab.redis.hset(lab.keys.record(requestId), 'state', 'running', 'fence', 1);

  await requests.finish({ shard: SHARD, requestId, tenantId, keyId, queue: 'interactive', fence: 1 }, 0, CANCELLED);

  const used = await usedOf(lab.redis, lab.keys.tokenWindow(keyId));
  expect(used.tokens).toBeGreaterThanOrEqual(1_000);
});

it('a line that emptied after the clock was put back is not its first tenant’s alone', async () => {
  await lab.redis.del(lab.keys.prioritized('interactive'));
  const [first, other] = [await lab.key(), await lab.key()];
  // The other one's last turn, of before.
  await lab.redis.hset(
    lab.keys.account(other.principal.tenantId),
    'finishTag:interactive',
    (Date.now() + BACK_MS) * VIRTUAL_TIME_PER_MS,
  );
  for (let index = 0; index < 3; index += 1) await first.admit({ body: '{}' });
  const requestId = newId('req');
  await other.admit({ requestId, body: '{}' });

  const order = await lab.redis.zrange(lab.keys.prioritized('interactive'), '0', '-1');

  expect(order.indexOf(requestId)).toBeLessThanOrEqual(1);
  // Its own requests go in the order of acceptance.
  const later = newId('req');
  await other.admit({ requestId: later, body: '{}' });
  const after = await lab.redis.zrange(lab.keys.prioritized('interactive'), '0', '-1');
  expect(after.indexOf(later)).toBeGreaterThan(after.indexOf(requestId));
});

it('the pace of a line stays one, so nobody is told a wait below nothing', async () => {
  const key = await lab.key();
  const { keyId, tenantId } = key.principal;
  const requests = createRequestStore(lab.redis, lab.keyspace, { leaseMs: 10_000, disconnectGraceMs: 30_000 });
  const requestId = newId('req');
  await key.admit({ requestId });
  await lab.redis.set(lab.keys.body(requestId), '{}');
  await lab.redis.hset(lab.keys.record(requestId), 'state', 'running', 'fence', 1);
  const statistics = lab.keys.queueStatistics('interactive');
  await lab.redis.hset(statistics, { 'ends:queue': 7, 'since:queue': Date.now() + BACK_MS, 'gap:queue': '20.000' });

  await requests.finish({ shard: SHARD, requestId, tenantId, keyId, queue: 'interactive', fence: 1 }, 0, CANCELLED);

  const [gap, since] = await lab.redis.hmget(statistics, 'gap:queue', 'since:queue');
  expect(Number(gap)).toBe(20);
  expect(Number(since)).toBeLessThanOrEqual(Date.now() + 1_000);
});

it('a full queue tells times of now', async () => {
  const short = await openAdmissionLab({ queueLimit: 1 });
  await short.redis.hset(short.keys.queueStatistics('interactive'), 'retry:queue', Date.now() + BACK_MS);
  await short.redis.zadd(short.keys.prioritized('interactive'), 1, 'waits');
  const key = await short.key();

  const refused = await key.admit({ body: '{}' });

  expect(refused.verdict).toBe('queue');
  expect(refused.retryAfterMs).toBeLessThan(5_000);
  await short.close();
});
