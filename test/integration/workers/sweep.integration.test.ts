import { beforeEach, describe, expect, it } from '@jest/globals';

import type { HandedRequest } from '../../../workers/pipeline/stage.ts';
import type { Sweep } from '../../../workers/settlement/sweep.ts';
import { waitFor } from '../../support/chat.ts';
import { sweepOf } from '../../support/sweep.ts';
import { needs, openRequestLab, RATE, SHARD } from '../../support/request-lab.ts';
import type { AdmitOptions, LabRequest } from '../../support/request-lab.ts';
import { useEach } from '../../support/use-service.ts';

const lab = useEach('lab', openRequestLab);
let sweep: Sweep;
/** What the sweep hands to the pipeline. */
let taken: HandedRequest[];
let hasReconnectedRecently = false;
let runPipeline: (delivery: HandedRequest) => Promise<void>;
beforeEach(() => {
  taken = [];
  hasReconnectedRecently = false;
  runPipeline = (delivery) => {
    taken.push(delivery);
    return Promise.resolve();
  };
  sweep = newSweep('process');
});

const newSweep = (processId: string): Sweep =>
  sweepOf(lab, processId, {
    hasReconnectedRecently: () => hasReconnectedRecently,
    isExhausted: () => false,
    runPipeline: (delivery) => runPipeline(delivery),
  });

/** The time in which its owner should have shown itself is over. */
const letExpire = ({ requestId }: LabRequest) => lab.redis.zadd(lab.keys.inflight, 'XX', 1, requestId);

async function accepted(options: AdmitOptions & { withJob?: boolean } = {}): Promise<LabRequest> {
  const request = await lab.admit(options);
  const { requestId, principal } = request;
  if (options.withJob === true)
    await lab.queues.queue(SHARD, 'interactive').add('chat', { tenantId: principal.tenantId }, { jobId: requestId });
  await letExpire(request);
  return request;
}

/** A request whose worker has gone silent. */
async function abandoned(options: AdmitOptions & { withJob?: boolean; text?: string } = {}): Promise<LabRequest> {
  const request = await accepted(options);
  await lab.run(request, 1);
  if (options.text !== undefined) await lab.requests.append(request.ref(1), 1, [options.text]);
  await letExpire(request);
  return request;
}

const stateOf = ({ requestId }: LabRequest) => lab.redis.hget(lab.keys.record(requestId), 'state');
const lookAgainAt = ({ requestId }: LabRequest) => lab.redis.zscore(lab.keys.inflight, requestId);

it('takes nothing over while Redis has just come back: leases have run out whose workers live', async () => {
  const request = await abandoned({ text: 'Hello' });
  hasReconnectedRecently = true;

  await sweep.sweepShard(SHARD);
  expect(taken).toEqual([]);

  hasReconnectedRecently = false;
  await sweep.sweepShard(SHARD);
  expect(taken).toMatchObject([{ requestId: request.requestId, fence: 2 }]);
});

describe('an admission', () => {
  it('is left to the queue while its job waits there', async () => {
    const request = await accepted({ withJob: true });

    await sweep.sweepShard(SHARD);

    expect(taken).toEqual([]);
    expect(await stateOf(request)).toBe('accepted');
    expect(Number(await lookAgainAt(request))).toBeGreaterThan(Date.now());
  });

  it('is taken back when its job was handed out before the body could come', async () => {
    const request = await accepted({ withJob: true, withoutBody: true });
    // The worker found no body and dropped the job, which is over for BullMQ.
    await lab.redis.zadd(`${lab.keys.tag}:interactive:completed`, 1, request.requestId);

    await sweep.sweepShard(SHARD);

    expect(await stateOf(request)).toBe('void');
  });
});

describe('a running request', () => {
  it('is left alone while its worker renews the lease', async () => {
    const request = await abandoned();
    await lab.requests.renew(request.ref(1), needs(0));

    await sweep.sweepShard(SHARD);

    expect(taken).toEqual([]);
  });

  it('is left to the queue while BullMQ will hand it out again', async () => {
    await abandoned({ withJob: true });

    await sweep.sweepShard(SHARD);

    expect(taken).toEqual([]);
  });

  it('is ended when its body is gone, and nothing it held is left', async () => {
    const principal = await lab.tenant(1_000 * RATE);
    const request = await abandoned({ principal });
    await lab.redis.del(lab.keys.body(request.requestId));

    await sweep.sweepShard(SHARD);

    expect(await stateOf(request)).toBe('done');
    expect(await lookAgainAt(request)).toBeNull();
    expect(await lab.figures(principal)).toMatchObject({ ledgerMicro: 1_000 * RATE, heldMicro: 0, pendingMicro: 0 });
    await waitFor(() => lab.heard.find((message) => message.includes('"code":"model_unavailable"')), 'the end');
    expect(taken).toEqual([]);
  });

  it('is looked at again soon when taking it over came to nothing', async () => {
    const request = await abandoned();
    runPipeline = () => Promise.reject(new Error('Redis went away'));

    await sweep.sweepShard(SHARD);
    await sweep.idle();

    expect(Number(await lookAgainAt(request))).toBeLessThan(Date.now() + 6_000);
  });
});

describe('a round', () => {
  it('forgets what has ended and what nobody knows any more', async () => {
    const request = await abandoned();
    await lab.redis.hset(lab.keys.record(request.requestId), 'state', 'done');
    await lab.redis.zadd(lab.keys.inflight, 1, 'req_unknown');

    await sweep.sweepShard(SHARD);

    expect(await lab.redis.zcard(lab.keys.inflight)).toBe(0);
    expect(taken).toEqual([]);
  });

  it('reaches a dead request behind hundreds that merely wait', async () => {
    const waiting = await Promise.all(Array.from({ length: 250 }, () => accepted({ withJob: true })));
    const dead = await abandoned({ text: 'Hel' });
    await lab.redis.zadd(lab.keys.inflight, 'XX', 2, dead.requestId);

    await sweep.sweepShard(SHARD);

    expect(waiting).toHaveLength(250);
    expect(taken).toMatchObject([{ requestId: dead.requestId }]);
  });

  it('goes on while requests that were taken over still run, and not beyond what one process can bear', async () => {
    const end = Promise.withResolvers<undefined>();
    runPipeline = async (delivery) => {
      taken.push(delivery);
      await end.promise;
    };
    await Promise.all(Array.from({ length: 60 }, () => abandoned()));

    await sweep.sweepShard(SHARD);
    expect(taken).toHaveLength(50);
    let isIdle = false;
    const idle = sweep.idle().then(() => (isIdle = true));
    await sweep.sweepShard(SHARD);
    expect(isIdle).toBe(false);
    end.resolve(undefined);
    await idle;
    await sweep.sweepShard(SHARD);

    expect(new Set(taken.map(({ requestId }) => requestId)).size).toBe(60);
  });

  it('ends the rest when one request cannot be swept', async () => {
    const stuck = await accepted({ withoutBody: true });
    const dead = await abandoned({ text: 'Hel' });
    await lab.redis.zadd(lab.keys.inflight, 'XX', 2, dead.requestId);
    // A value of another type is in the way of taking it back.
    await lab.redis.set(lab.keys.stream(stuck.requestId), 'in the way');

    await sweep.sweepShard(SHARD);

    expect(taken).toMatchObject([{ requestId: dead.requestId }]);
  });

  it('a round is one process’s work at a time', async () => {
    await sweep.sweepShard(SHARD);
    await abandoned();
    const other = newSweep('other');

    await other.sweepShard(SHARD);
    expect(taken).toEqual([]);
    await sweep.release(SHARD);
    await other.sweepShard(SHARD);

    expect(taken).toHaveLength(1);
  });
});
