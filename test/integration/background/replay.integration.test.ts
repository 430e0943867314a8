import { beforeAll, describe, expect, it } from '@jest/globals';

import { createAdmissionStore } from '../../../shared/requests/admission-store.ts';
import type { AdmissionRequest } from '../../../shared/requests/admit-arguments.ts';
import { createReplayStore } from '../../../shared/requests/replay-store.ts';
import type { ReplayStore } from '../../../shared/requests/replay-store.ts';
import { unlimited } from '../../../shared/redis/time-limits.ts';
import {
  endingOf,
  FAILED,
  needs,
  openRequestLab,
  REQUEST_TIMEOUT_MS,
  RETENTION_MS,
  SHARD,
} from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { sweepOf } from '../../support/sweep.ts';
import { usedOf } from '../../support/use-window.ts';
import type { HandedRequest } from '../../../workers/pipeline/stage.ts';
import { useStarted } from '../../support/use-service.ts';

const TERMS = { endpoint: 'chat', tier: 'mobius', queue: 'interactive' } as const;

let replays: ReplayStore;
const lab = useStarted('lab', openRequestLab);
beforeAll(() => {
  const settings = { requestTimeoutMs: REQUEST_TIMEOUT_MS, limit: unlimited };
  replays = createReplayStore(lab.redis, lab.keyspace, settings);
});

/** A request whose first delivery has ended it without text. */
async function failedRequest(): Promise<LabRequest> {
  const request = await lab.admit();
  const claimed = await lab.run(request, 1);
  const { owner } = claimed;
  // Its provider was asked: its prompt stays in the window.
  const ending = { ...FAILED, unbilledTokens: 7 };
  expect(await lab.requests.finish({ ...request.ref(1), owner }, 0, ending)).toBe(true);
  return request;
}

const callOf = ({ requestId, principal }: LabRequest): AdmissionRequest => ({
  ...{ requestId, principal, ...TERMS, channel: '', onDisconnect: 'finish', idempotency: undefined },
  rates: { promptMicro: 1, completionMicro: 1 },
  ...{ promptTokens: 10, maxTokens: 100, metadataJson: undefined, entityHash: undefined },
});

/** Admits it again under its id; its body follows. */
async function admitAgain(request: LabRequest): Promise<void> {
  const admission = await lab.admissions.admit(callOf(request), Date.now());
  expect(admission.verdict).toBe('admitted');
}

/** The sum of a window of tokens. */
async function tokensOf(key: string): Promise<number> {
  return (await usedOf(lab.redis, key)).tokens;
}

describe('a failed request that is run again', () => {
  it('keeps its time and its place in the order, and a late end of its first delivery is refused', async () => {
    const request = await failedRequest();
    const { requestId, envelope } = request;
    const late = { ...request.ref(1), owner: 'first' };
    const reopened = await replays.reopen(SHARD, envelope);
    const between = await lab.requests.finish(late, 0, endingOf(request, 'late', { prompt: 1, completion: 1 }));
    await admitAgain(request);

    const states = [
      await replays.requeue(SHARD, envelope, 1),
      // The answer was lost.
      await replays.requeue(SHARD, envelope, 1),
    ];
    const before = await lab.requests.finish(late, 0, endingOf(request, 'late', { prompt: 1, completion: 1 }));
    const [acceptedAt, seq] = await lab.redis.hmget(lab.keys.record(requestId), 'acceptedAt', 'seq');
    const again = await lab.run(request, 2);
    const during = await lab.requests.finish(late, 0, endingOf(request, 'late', { prompt: 1, completion: 1 }));
    const own = { ...request.ref(2), owner: again.owner };
    const finished = await lab.requests.finish(own, 0, endingOf(request, 'new', { prompt: 1, completion: 1 }));

    expect(reopened).toEqual({ kind: 'open', fence: 1 });
    expect([between, before, during, finished]).toEqual([false, false, false, true]);
    expect(states).toEqual(['accepted', 'accepted']);
    expect([Number(acceptedAt), Number(seq)]).toEqual([envelope.acceptedAt, envelope.acceptedAt * 1000]);
    expect(await lab.redis.hget(lab.keys.job('interactive', requestId), 'ats')).toBe('1');
    const { pendingMicro, heldMicro } = await lab.figures(request.principal);
    expect([pendingMicro > 0, heldMicro]).toEqual([true, 0]);
  });

  it('takes nothing of the requests a minute, and leaves the windows of tokens whole', async () => {
    const request = await failedRequest();
    const { keyId, tenantId } = request.principal;
    const requests = async () => [
      await lab.redis.zscore(lab.keys.keyRpm(keyId), request.requestId),
      (await usedOf(lab.redis, lab.keys.account(tenantId))).requests,
    ];
    const before = await requests();

    await replays.reopen(SHARD, request.envelope);
    await admitAgain(request);
    await replays.requeue(SHARD, request.envelope, 1);
    const after = await requests();
    const again = await lab.run(request, 2);
    const own = { ...request.ref(2), owner: again.owner };
    await lab.requests.finish(own, 0, endingOf(request, 'new', { prompt: 1, completion: 1 }));

    expect(after).toEqual(before);
  });

  it('weighs no more in the windows of tokens as its answer grows', async () => {
    const request = await failedRequest();
    const { keyId } = request.principal;
    await replays.reopen(SHARD, request.envelope);
    await admitAgain(request);
    await replays.requeue(SHARD, request.envelope, 1);
    const before = await tokensOf(lab.keys.tokenWindow(keyId));

    const again = await lab.run(request, 2);
    await lab.requests.renew({ ...request.ref(2), owner: again.owner }, needs(300));

    expect(await tokensOf(lab.keys.tokenWindow(keyId))).toEqual(before);
  });

  it('leaves no log of requests behind that lives for ever', async () => {
    const request = await failedRequest();
    const { principal } = request;
    const log = lab.keys.keyRpm(principal.keyId);
    // As three minutes later.
    await lab.redis.del(log, lab.keys.tokenWindow(principal.keyId));
    await replays.reopen(SHARD, request.envelope);
    await admitAgain(request);
    await replays.requeue(SHARD, request.envelope, 1);

    await lab.admit({ principal });

    expect(await lab.redis.pttl(log)).toBeGreaterThan(0);
  });

  it('leaves the times that callers of a full queue are told as they are', async () => {
    const request = await failedRequest();
    const { requestId, principal } = request;
    const settings = { queueLimit: 1, requestTimeoutMs: REQUEST_TIMEOUT_MS, retentionMs: RETENTION_MS };
    const narrow = createAdmissionStore(lab.redis, lab.keyspace, settings);
    const limits = { ...principal.limits, rpm: Number.MAX_SAFE_INTEGER };
    const told = () => lab.redis.hget(lab.keys.queueStatistics('interactive'), 'retry:queue');
    await lab.redis.zadd(lab.keys.prioritized('interactive'), 1, 'req_other');
    await replays.reopen(SHARD, request.envelope);

    const answers = [await narrow.admit({ ...callOf(request), principal: { ...principal, limits } }, Date.now())];
    const before = await told();
    answers.push(await narrow.admit({ ...callOf(request), requestId: `${requestId}x` }, Date.now()));
    await lab.redis.del(lab.keys.prioritized('interactive'));

    expect(answers.map(({ verdict }) => verdict)).toEqual(['queue', 'queue']);
    expect([before, await told()]).toEqual([null, expect.stringMatching(/^\d+$/)]);
  });

  it('is left as it is while it runs, once it has text, and where it is another tenant’s', async () => {
    const running = await lab.admit();
    await lab.run(running, 1);
    const done = await lab.admit();
    const claimed = await lab.run(done, 1);
    const own = { ...done.ref(1), owner: claimed.owner };
    await lab.requests.append(own, 1, ['Hi']);
    await lab.requests.finish(own, 1, { ...FAILED });
    const failed = await failedRequest();
    const before = await lab.snapshot();

    const kinds = [
      await replays.reopen(SHARD, running.envelope),
      await replays.reopen(SHARD, done.envelope),
      await replays.reopen(SHARD, { ...failed.envelope, tenantId: 'ten_other' }),
    ].map(({ kind }) => kind);

    expect(kinds).toEqual(['unchanged', 'unchanged', 'unchanged']);
    expect(await lab.snapshot()).toEqual(before);
  });
});

it('a request that is run again is handed out three times again when its workers die, and then only ended', async () => {
  const request = await lab.admit({ withoutBody: true });
  const { requestId, envelope } = request;
  const taken: HandedRequest[] = [];
  const sweep = sweepOf(lab, 'process', {
    hasReconnectedRecently: () => false,
    isExhausted: () => false,
    runPipeline: (delivery) => Promise.resolve(taken.push(delivery)),
  });
  // Three runs before have failed.
  await replays.requeue(SHARD, envelope, 3);
  await lab.redis.del(lab.keys.job('interactive', requestId));
  await lab.redis.zrem(lab.keys.prioritized('interactive'), requestId);
  for (let fence = 4; fence <= 6; fence += 1) {
    await lab.run(request, fence);
    await lab.redis.zadd(lab.keys.inflight, 'XX', 1, requestId);
    await sweep.sweepShard(SHARD);
  }

  expect(taken).toMatchObject([
    { fence: 5, endOnly: false },
    { fence: 6, endOnly: false },
    { fence: 7, endOnly: true },
  ]);
});
