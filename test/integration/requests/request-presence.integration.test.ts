import { describe, expect, it } from '@jest/globals';

import { LOST } from '../../../shared/contracts/events.ts';
import { seqAt } from '../../../shared/domain/request-times.ts';
import { createReplayLog } from '../../../shared/redis/redis-return.ts';
import type { ReplayLog } from '../../../shared/redis/redis-return.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { createRequestPresence } from '../../../shared/requests/rollback.ts';
import type { FinishInput } from '../../../shared/requests/delivery.ts';
import { unlimited } from '../../../shared/redis/time-limits.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { createFinish } from '../../../workers/pipeline/finish.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import { idleRun } from '../../support/idle-run.ts';
import { rollBackTo } from '../../support/restore-lab.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { endingOf, FAILED, openRequestLab, RETENTION_MS, SHARD, LAB_SETTINGS } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { sweepOf } from '../../support/sweep.ts';
import { waitUntil } from '../../support/wait-for.ts';
import { useStarted } from '../../support/use-service.ts';

const SHORT_MS = 1_000;
const FAILURE = {
  finishReason: 'error',
  usage: { promptTokens: 0, completionTokens: 0 },
  error: { code: 'model_unavailable', message: 'The model provider is not available at the moment.' },
} as const;

const lab = useStarted('lab', openRequestLab);

describe('a request whose tenant keeps answers for a moment only', () => {
  /** Ends a request as a worker does that has MongoDB keep its body meanwhile, and nothing behind the end. */
  async function fail(): Promise<{ requestId: string; replayLog: ReplayLog; before: Record<string, string> }> {
    const log = createRecordingLog();
    const replayLog = createReplayLog({ hasReconnectedRecently: () => false, clock: systemClock, log });
    const eraseDeleted = () => Promise.resolve();
    const replays = { replayLog, eraseDeleted, log };
    const requests = createRequestStore(lab.redis, lab.keyspace, { ...LAB_SETTINGS, replays });
    const conversations = { deleteTurn: () => Promise.resolve() };
    const finish = createFinish({ conversations, clock: systemClock, log, events: { emit: () => undefined } });
    const request = await lab.admit({ retentionMs: SHORT_MS });
    const { requestId, envelope } = request;
    const claimed = await requests.claim(request.ref(1));
    if (claimed.kind !== 'run') throw new Error('The request was not claimed.');
    const { delivery } = claimed;
    const run = idleRun({
      delivery,
      envelope: { ...envelope, retentionMs: SHORT_MS, kept: { redisOnly: true as const } },
    });
    const before = await lab.snapshot();

    expect(await finish(run, FAILURE)).toBe(true);

    return { requestId, replayLog, before };
  }

  /** What the sweep finds that looks for requests which Redis has lost. */
  async function found(requestId: string): Promise<string[]> {
    const { redis, keyspace, keys } = lab;
    await waitUntil(async () => (await redis.exists(keys.record(requestId))) === 0, 'it to go');
    return createRequestPresence(redis, keyspace, unlimited).look(SHARD, [requestId, 'req_unknown']);
  }

  it('is not taken for one that Redis has lost, also where its worker dies right behind the end', async () => {
    const { requestId } = await fail();

    expect(await found(requestId)).toEqual(['ended', 'missing']);
  });

  it('nor where Redis comes back without the end, which its worker says again', async () => {
    const { requestId, replayLog, before } = await fail();
    await rollBackTo(lab, before);

    await replayLog.replay();

    expect(await found(requestId)).toEqual(['ended', 'missing']);
  });
});

describe('a request that MongoDB has for a day, and whose record goes sooner,', () => {
  const idempotency = { name: 'a name', fingerprint: 'a print' };
  const TOKENS = { prompt: 10, completion: 5 };

  async function sweep({ requestId }: LabRequest): Promise<void> {
    await lab.redis.del(lab.keys.body(requestId));
    await lab.redis.zadd(lab.keys.inflight, 'XX', 1, requestId);
    await sweepOf(lab, 'process', {
      hasReconnectedRecently: () => false,
      isExhausted: () => false,
      runPipeline: () => Promise.resolve(),
    }).sweepShard(SHARD);
  }

  const finish = async (request: LabRequest, ending: FinishInput) => {
    await lab.run(request, 1);
    await lab.requests.finish(request.ref(1), 0, ending);
  };

  async function putBack(request: LabRequest, ending: FinishInput): Promise<void> {
    const { admission } = request;
    const { owner, seq, terms, now, remainingMs } = await lab.run(request, 1);
    const { tier, mode, endpoint, acceptedAt } = request.envelope;
    const facts = { tier, mode, endpoint, acceptedAt, startedAt: now, seq, deadline: now + remainingMs, terms };
    const ref = { ...request.ref(1), owner, facts: { ...facts, idempotency } };
    await lab.requests.finish(ref, 0, ending);
    await lab.redis.del(lab.keys.record(request.requestId), lab.keys.ended(request.requestId));
    expect([admission.verdict, await lab.requests.replayFinish(ref, 0, ending)]).toEqual(['admitted', 'replayed']);
  }

  it.each<[string, (request: LabRequest, retentionMs: number) => Promise<unknown>]>([
    ['failed', (request, retentionMs) => finish(request, { ...FAILED, retentionMs })],
    ['has its answer', (request, retentionMs) => finish(request, { ...endingOf(request, 'Hi', TOKENS), retentionMs })],
    [
      'was cancelled while it ran',
      (request, retentionMs) => finish(request, { ...FAILED, status: 'cancelled', retentionMs }),
    ],
    [
      'was cancelled in line',
      ({ principal, requestId }, retentionMs) =>
        createRecordStore(lab.redis, lab.keyspace, { retentionMs }).cancel(principal, requestId),
    ],
    [
      'was swept',
      async (request) => {
        await lab.run(request, 1);
        await sweep(request);
      },
    ],
    ['was swept in line', (request) => sweep(request)],
    ['was voided', ({ principal, requestId }) => lab.admissions.voidPermanently(requestId, principal, LOST)],
    ['was put back with its end', (request, retentionMs) => putBack(request, { ...FAILED, retentionMs })],
  ])('is not taken for one that Redis has lost if it %s', async (_, end) => {
    // The service's own time, a tenant's shorter one, and one in between.
    for (const retentionMs of [RETENTION_MS, SHORT_MS, 20 * RETENTION_MS]) {
      const principal = await lab.tenant(undefined, { onDisconnect: 'finish' });
      const request = await lab.admit({ principal, retentionMs, idempotency });
      await end(request, retentionMs);
      await lab.redis.del(lab.keys.record(request.requestId), lab.keys.idempotency(idempotency.name));

      const presence = createRequestPresence(lab.redis, lab.keyspace, unlimited);

      expect(await presence.look(SHARD, [request.requestId])).toEqual(['ended']);
      expect(await lab.redis.pttl(lab.keys.ended(request.requestId))).toBeGreaterThan(86_000_000);
    }
  });

  it('leaves no such note where its record itself stays for a day, or nobody may ask for it again', async () => {
    const names = [];
    for (const options of [{ retentionMs: 86_400_000, idempotency }, {}]) {
      const request = await lab.admit(options);
      await finish(request, { ...FAILED, retentionMs: options.retentionMs ?? RETENTION_MS });
      names.push(lab.keys.ended(request.requestId));
    }

    expect(await lab.redis.exists(...names)).toBe(0);
  });
});

it('puts a request that is admitted again where it was in the order of acceptance', async () => {
  const request = await lab.admit();
  const acceptedAt = request.admission.now - 5_000;

  await createRequestPresence(lab.redis, lab.keyspace, unlimited).setAcceptedAt(SHARD, request.requestId, acceptedAt);

  expect(await lab.run(request, 1)).toMatchObject({ seq: seqAt(acceptedAt) });
});

it('puts nothing in the place of a request that Redis has lost meanwhile', async () => {
  const { redis, keyspace } = lab;

  await createRequestPresence(redis, keyspace, unlimited).setAcceptedAt(SHARD, 'req_lost', 1_700_000_000_000);

  expect(await redis.exists(keyspace.shard(SHARD).record('req_lost'))).toBe(0);
});
