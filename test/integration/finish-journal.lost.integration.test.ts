/** What a worker brings back of a request of which Redis has lost everything, its end included. */
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';

import { dayOf, monthOf } from '../../shared/domain/pricing/pricing.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import { createRecentWrites } from '../../shared/infra/redis/recent-writes.ts';
import type { RecentWrites } from '../../shared/infra/redis/recent-writes.ts';
import type { Ending } from '../../shared/infra/redis/requests/request-store.ts';
import { createStreamReader } from '../../shared/infra/redis/requests/stored-answers.ts';
import { systemClock } from '../../shared/lifecycle/clock.ts';
import { createFinishJournal } from '../../workers/settlement/finish-journal.ts';
import type { FinishJournal } from '../../workers/settlement/finish-journal.ts';
import { createRecordingLog } from '../support/recording-log.ts';
import { endingOf, openRequestLab, RATE, SHARD } from '../support/request-lab.ts';
import type { RequestLab } from '../support/request-lab.ts';

let lab: RequestLab;
let recentWrites: RecentWrites;
let endings: FinishJournal;
beforeAll(async () => {
  lab = await openRequestLab();
});
afterAll(async () => {
  await lab.close();
});
beforeEach(async () => {
  const log = createRecordingLog();
  recentWrites = createRecentWrites({ hasReconnectedRecently: () => false, clock: systemClock, log });
  endings = createFinishJournal({ requests: lab.requests, recentWrites, log });
  await lab.redis.del(lab.keys.outbox);
});

const settlements = async () => (await lab.outbox.read(SHARD, 'new', 10)).map(({ record }) => record?.requestId);

/** Admits, runs and ends a request in what Redis loses; what its worker has told is told again, twice. */
async function lose(principal: Principal, sent: readonly string[] = [], more: Partial<Ending> = {}) {
  const before = await lab.snapshot();
  const lost = await lab.admit({ principal });
  await lab.run(lost, 1);
  if (sent.length > 0) await lab.requests.append(lost.ref(1), sent.length, sent);
  const ending = endingOf(lost, 'Hello', { prompt: 10, completion: 5 });
  await endings.finish(lost.ref(1), sent.length, { ...ending, ...more });
  await lab.redis.unlink(...Object.keys(await lab.snapshot()));
  for (const [key, value] of Object.entries(before)) await lab.redis.restore(key, 0, Buffer.from(value, 'base64'));
  await recentWrites.repeatAll();
  await recentWrites.repeatAll();
  return lost;
}

it('credits and tokens of a lost request are pending until its charge is booked', async () => {
  const principal = await lab.tenant(100 * RATE);
  const { requestId } = await lose(principal);

  expect(await lab.figures(principal)).toMatchObject({ heldMicro: 0, pendingMicro: 15 * RATE });
  const { tenantId } = principal;
  expect(await lab.redis.hget(lab.keys.account(tenantId), `pt:${monthOf(Date.now())}`)).toBe('15');
  expect(await settlements()).toEqual([requestId]);
  const book = { version: 2, balanceMicro: 85 * RATE, tokensByMonth: {} };
  await lab.accounts.publishBook(SHARD, tenantId, book, [requestId]);
  expect(await lab.figures(principal)).toMatchObject({ pendingMicro: 0 });
});

it('a lost request counts once in the allowance of test keys', async () => {
  const principal = await lab.tenant(0, { mode: 'test' });
  const { requestId } = await lose(principal);

  const allowance = lab.keys.testAllowance(principal.tenantId, dayOf(Date.now()));
  expect(await lab.redis.get(allowance)).toBe('15');
  expect(await settlements()).toEqual([requestId]);

  await lab.accounts.publishBook(SHARD, principal.tenantId, { version: 2, balanceMicro: 0, tokensByMonth: {} }, [
    requestId,
  ]);
  await recentWrites.repeatAll();
  expect(await lab.redis.get(allowance)).toBe('15');
});

it('a lost request has its charge written where its answer came back without it', async () => {
  const principal = await lab.tenant(100 * RATE);
  const { requestId } = await lose(principal, [], { record: { billed: '1' } });
  expect(await lab.redis.hget(lab.keys.record(requestId), 'state')).toBe('done');
  await lab.redis.del(lab.keys.outbox, lab.keys.pending(principal.tenantId));

  await recentWrites.repeatAll();

  expect(await settlements()).toEqual([requestId]);
  expect(await lab.redis.hexists(lab.keys.pending(principal.tenantId), requestId)).toBe(1);
});

it('a lost request has nothing pending but what its next run takes, where it is run again', async () => {
  const principal = await lab.tenant(100 * RATE);

  // Its first text came from an earlier delivery, so the answer cannot be brought back.
  const { requestId } = await lose(principal, ['Well, '], { record: { billed: '1' } });

  expect(await lab.figures(principal)).toMatchObject({ heldMicro: 0, pendingMicro: 0 });
  expect(new Set(await settlements())).toEqual(new Set([requestId]));
});

it('a lost request is found with all of its answer, and under its Idempotency-Key, where that is kept', async () => {
  const principal = await lab.tenant(100 * RATE);
  const idempotency = { name: 'a key of one that is lost', fingerprint: 'a print' };
  const record = { billed: '1', tier: 'mobius' };
  const { requestId } = await lose(principal, ['Well, '], { record, idempotency, earlier: ['Well, '] });

  const entries = await createStreamReader(lab.redis, lab.keyspace).readFrom(SHARD, requestId, 1);
  expect(entries.flatMap(({ deltas }) => deltas)).toEqual([JSON.stringify('Well, '), JSON.stringify('Hello')]);
  expect(entries.at(-1)).toMatchObject({ lastSeq: 4, terminal: { finishReason: 'stop' } });
  const claim = `${requestId} ${idempotency.fingerprint} ${principal.tenantId}`;
  expect(await lab.redis.get(lab.keys.idempotency(idempotency.name))).toBe(claim);
  expect(await lab.figures(principal)).toMatchObject({ heldMicro: 0, pendingMicro: 15 * RATE });
});
