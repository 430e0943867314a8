import { beforeEach, expect, it } from '@jest/globals';

import { createEnqueuer } from '../../../shared/requests/enqueue.ts';
import type { EnqueuerDeps } from '../../../shared/requests/enqueue.ts';
import { LOST } from '../../../shared/contracts/events.ts';
import { dayOf } from '../../../shared/domain/pricing.ts';
import { createReplayLog } from '../../../shared/redis/redis-return.ts';
import type { ReplayLog } from '../../../shared/redis/redis-return.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import type { RequestStore } from '../../../shared/requests/delivery-store.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { rollBackTo } from '../../support/restore-lab.ts';
import { endingOf, LAB_SETTINGS, openRequestLab, RATE, RETENTION_MS, SHARD } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';
import { useStarted } from '../../support/use-service.ts';

let replayLog: ReplayLog;
let endings: Pick<RequestStore, 'finish'>;
let time: number;
let isAway: boolean;
let request: LabRequest;
const lab = useStarted('lab', openRequestLab);

beforeEach(async () => {
  time = 1_000_000;
  isAway = false;
  const log = createRecordingLog();
  replayLog = createReplayLog({ hasReconnectedRecently: () => isAway, clock: { now: () => time }, log });
  endings = createRequestStore(lab.redis, lab.keyspace, {
    ...LAB_SETTINGS,
    replays: { replayLog, eraseDeleted: () => Promise.resolve(), log },
  });
  await lab.redis.del(lab.keys.outbox);
  request = await lab.admit();
  await lab.run(request, 1);
});

const finish = () => endings.finish(request.ref(1), 0, endingOf(request, 'Hello', { prompt: 10, completion: 5 }));
const settlements = async () => (await lab.outbox.read(SHARD, 'new', 10)).map(({ record }) => record?.requestId);

/** What a power cut takes that comes between two writes of the append-only file. */
async function losing(action: () => Promise<unknown>): Promise<void> {
  const before = await lab.snapshot();
  await action();
  await rollBackTo(lab, before);
}

it('ends the request again in a Redis that came back without its end', async () => {
  await losing(finish);

  await replayLog.replay();
  await replayLog.replay();

  expect(await lab.redis.hmget(lab.keys.record(request.requestId), 'state', 'status')).toEqual(['done', 'completed']);
  expect(await lab.figures(request.principal)).toMatchObject({ heldMicro: 0, pendingMicro: 15 * RATE });
  expect(await settlements()).toEqual([request.requestId]);
});

it('ends the others again where something else stands in the place of one', async () => {
  const broken = await lab.admit();
  await lab.run(broken, 1);
  await losing(async () => {
    await endings.finish(broken.ref(1), 0, endingOf(broken, 'Hello', { prompt: 10, completion: 5 }));
    await finish();
  });
  await lab.redis.set(lab.keys.record(broken.requestId), 'no hash');

  await replayLog.replay();

  expect(await settlements()).toEqual([request.requestId]);
});

/** The deps of an enqueuer that only takes back, by `voidRefused`. */
function takingBack(voidRefused: EnqueuerDeps['store']['voidRefused']): EnqueuerDeps {
  return {
    queueOrder: { enqueue: () => Promise.reject(new Error('Nobody asks for this.')) },
    store: { voidPermanently: lab.admissions.voidPermanently, voidRefused },
    giveUpAfterMs: 10_000,
    replayLog,
    clock: systemClock,
    log: createRecordingLog(),
  };
}

it.each([
  ['the record', () => lab.snapshot().then((all) => lab.redis.unlink(...Object.keys(all)))],
  ['the end', () => lab.redis.hset(lab.keys.record(request.requestId), 'state', 'running')],
] as const)('charges nothing for what its caller was told was not accepted, although %s was lost', async (_, lose) => {
  await lab.admissions.voidRefused(request.requestId, request.principal, LOST);
  await finish();
  await lab.redis.hdel(lab.keys.record(request.requestId), 'unbilled');
  await lose();

  await replayLog.replay();

  expect(await settlements()).toEqual([]);
  expect(await lab.figures(request.principal)).toMatchObject({ pendingMicro: 0 });
});

it('stops a request again whose caller was told that nothing was accepted while a worker had it', async () => {
  const { voidLater } = createEnqueuer(takingBack(lab.admissions.voidRefused));
  const record = lab.keys.record(request.requestId);
  const marks = () => lab.redis.hmget(record, 'cancel', 'unbilled');
  voidLater(request.requestId, request.principal);
  await waitUntil(async () => (await marks()).every((mark) => mark === '1'), 'its caller to be told');
  await lab.redis.hdel(record, 'cancel', 'unbilled');

  await replayLog.replay();

  expect(await marks()).toEqual(['1', '1']);
  await finish();
  expect(await settlements()).toEqual([]);
});

it('says of an end that nobody pays for it, also where Redis has lost that and it is repeated', async () => {
  const { requestId, principal } = request;
  await lab.admissions.voidRefused(requestId, principal, LOST);
  const ending = endingOf(request, 'Hello', { prompt: 10, completion: 5 });
  let times = 0;
  await losing(() => endings.finish(request.ref(1), 0, { ...ending, whenUnbilled: () => (times += 1) }));
  expect(times).toBe(1);

  await replayLog.replay();

  expect([times, await settlements()]).toEqual([2, []]);
});

it('takes a request back again of which only the second try to take it back was answered', async () => {
  const { requestId, principal } = await lab.admit();
  const before = await lab.snapshot();
  const found: string[] = [];
  const { voidLater } = createEnqueuer(
    takingBack(async (...call) => {
      found.push(await lab.admissions.voidRefused(...call));
      if (found.length === 1) throw new Error('Command timed out');
      return found.at(-1) ?? '';
    }),
  );
  voidLater(requestId, principal);
  await waitFor(() => found[1], 'the second try');
  await rollBackTo(lab, before);

  await replayLog.replay();

  expect(found.slice(0, 2)).toEqual(['accepted', 'void']);
  expect(await lab.redis.hget(lab.keys.record(requestId), 'state')).toBe('void');
});

it('leaves what goes on for the next try under its Idempotency-Key, and what Redis brings back of it', async () => {
  const idempotency = { name: 'a key', fingerprint: 'a print' };
  const named = await lab.admit({ idempotency });
  await lab.run(named, 1);
  const found: string[] = [];
  const { voidLater } = createEnqueuer(
    takingBack(async (...call) => {
      const state = await lab.admissions.voidRefused(...call);
      found.push(state);
      return state;
    }),
  );
  voidLater(named.requestId, named.principal);
  await waitFor(() => found[0], 'the state that it is in');
  // Redis is back without the claim.
  await lab.redis.hset(lab.keys.record(named.requestId), 'state', 'accepted');

  await replayLog.replay();

  expect(found).toEqual(['running']);
  expect(await lab.redis.hget(lab.keys.record(named.requestId), 'state')).toBe('accepted');
});

it('leaves what has ended when its caller is told that nothing was accepted: its answer is found by its id', async () => {
  await finish();
  const before = await lab.snapshot();

  expect(await lab.admissions.voidRefused(request.requestId, request.principal, LOST)).toBe('done');

  expect(await lab.snapshot()).toEqual(before);
  const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
  expect(await records.find(request.principal, request.requestId)).toMatchObject({
    status: 'completed',
    isGone: false,
  });
  expect(await settlements()).toEqual([request.requestId]);
});

it('takes nothing of the allowance of a test key whose caller was told that nothing was accepted', async () => {
  const principal = await lab.tenant(0, { mode: 'test' });
  const unbilled = await lab.admit({ principal });
  await lab.run(unbilled, 1);
  await lab.admissions.voidRefused(unbilled.requestId, principal, LOST);

  await endings.finish(unbilled.ref(1), 0, endingOf(unbilled, 'Hello', { prompt: 10, completion: 5 }));

  const allowance = lab.keys.testAllowance(principal.tenantId, dayOf(Date.now()));
  expect(Number(await lab.redis.get(allowance))).toBe(0);
});

it('changes nothing where nothing was lost', async () => {
  await finish();
  const before = await lab.snapshot();

  await replayLog.replay();

  expect(await lab.snapshot()).toEqual(before);
});

it('leaves a request to the delivery that has taken it over meanwhile', async () => {
  await losing(finish);
  await lab.run(request, 2);

  await replayLog.replay();

  expect(await lab.redis.hget(lab.keys.record(request.requestId), 'state')).toBe('running');
  expect(await settlements()).toEqual([]);
});

it('forgets what is older than a few seconds, but only while Redis is there to take more', async () => {
  await losing(finish);
  time += 3_600_000;
  await replayLog.replay();
  expect(await settlements()).toEqual([request.requestId]);

  const older = request;
  time += 60_000;
  request = await lab.admit();
  await lab.run(request, 1);
  await finish();
  await lab.redis.unlink(...Object.keys(await lab.snapshot()));
  await replayLog.replay();

  expect(await settlements()).toEqual([request.requestId]);
  expect(older.requestId).not.toBe(request.requestId);
});

it('keeps what ended before one master of a cluster went away, while requests end on the others', async () => {
  await losing(finish);
  const lost = request.requestId;
  isAway = true;
  time += 3_600_000;
  request = await lab.admit();
  await lab.run(request, 1);
  await finish();

  await replayLog.replay();

  expect((await settlements()).sort()).toEqual([lost, request.requestId].sort());
});
