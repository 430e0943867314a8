import { setTimeout as pause } from 'node:timers/promises';

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Worker } from 'bullmq';

import type { ChatJob } from '../../../shared/contracts/jobs.ts';
import { mayClaim } from '../../../workers/pipeline/claim.ts';
import type { HandedRequest } from '../../../workers/pipeline/stage.ts';
import { createInferenceWorker } from '../../../workers/queue/inference.ts';
import type { InferenceWorker } from '../../../workers/queue/inference.ts';
import { BOUNDLESS } from '../../support/job-lab.ts';
import { waitFor, waitUntil } from '../../support/chat.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import type { RecordingLog } from '../../support/recording-log.ts';
import { needs, openRequestLab, SHARD } from '../../support/request-lab.ts';
import { useEach } from '../../support/use-service.ts';

/** The proportions of the real ones, so that a stall takes half a second. */
const TIMINGS = { lockMs: 400, stallCheckMs: 150, canaryMs: 300 };

let log: RecordingLog;
const workers: InferenceWorker[] = [];
let delivered: HandedRequest[];
/** Whose lock was told to be lost. */
let lost: string[];
/** What a delivery does; by default nothing. */
let runPipeline: (delivery: HandedRequest) => Promise<undefined>;
beforeEach(() => {
  log = createRecordingLog();
  delivered = [];
  lost = [];
  runPipeline = () => Promise.resolve(undefined);
});
afterEach(() => Promise.all(workers.splice(0).map((worker) => worker.close())));
const lab = useEach('lab', openRequestLab);
const queue = () => lab.queues.queue(SHARD, 'interactive');

function startWorker(timings = TIMINGS, concurrency = 10): InferenceWorker {
  const worker = createInferenceWorker({
    client: lab.redis,
    keyspace: lab.keyspace,
    shard: SHARD,
    concurrency,
    queueName: 'interactive',
    queue: queue(),
    runPipeline: (delivery) => {
      delivered.push(delivery);
      return runPipeline(delivery);
    },
    ...{ room: BOUNDLESS, workerId: `wrk_${workers.length}` },
    completedKept: 0,
    onLockLost: (requestId) => lost.push(requestId),
    log,
    timings,
  });
  workers.push(worker);
  return worker;
}

const add = (requestId: string) => queue().add('chat', { tenantId: 'ten_1' }, { jobId: requestId });
const jobOf = (requestId: string) => queue().getJob(requestId);
const deliveries = (requestId: string) => delivered.filter((delivery) => delivery.requestId === requestId);
const waitForDeliveries = (requestId: string, count: number) =>
  waitUntil(() => deliveries(requestId).length >= count, `${count} deliveries of ${requestId}`);
const waitForState = (requestId: string, state: string) =>
  waitUntil(async () => (await (await jobOf(requestId))?.getState()) === state, `${requestId} to be ${state}`);

/** An ended job is removed. */
const waitForEnd = (requestId: string) =>
  waitUntil(async () => (await jobOf(requestId)) === undefined, `the end of ${requestId}`);

/** A worker that runs nothing by itself. */
function idleWorker(): Worker<ChatJob> {
  const worker = new Worker<ChatJob>('interactive', null, {
    connection: lab.redis,
    prefix: lab.keys.tag,
    lockDuration: TIMINGS.lockMs,
    stalledInterval: TIMINGS.stallCheckMs,
    autorun: false,
  });
  worker.on('error', () => undefined);
  return worker;
}

/** Takes the next job as a process that dies the moment it has it. */
async function takeAndDie(): Promise<void> {
  const doomed = idleWorker();
  await waitFor(() => doomed.getNextJob('a dead worker', { block: false }), 'a job to take');
  await doomed.close(true);
}

/** Lets the queue find out that the job's worker is dead. */
async function waitForReturn(requestId: string): Promise<void> {
  const watching = idleWorker();
  void watching.startStalledCheckTimer();
  await waitForState(requestId, 'waiting');
  await watching.close(true);
}

describe('a job', () => {
  it('is one delivery, its start the fence, and leaves nothing behind', async () => {
    startWorker();
    await add('req_1');

    await waitForEnd('req_1');

    expect(deliveries('req_1')).toMatchObject([{ shard: SHARD, requestId: 'req_1', tenantId: 'ten_1', fence: 1 }]);
    const left = Object.keys(await lab.snapshot()).filter((key) => key.includes('req_1'));
    expect(left).toEqual([]);
  });

  it('that a worker took with it when it died is run again under a higher fence', async () => {
    await add('req_1');
    await takeAndDie();
    startWorker();

    await waitForEnd('req_1');

    expect(deliveries('req_1')).toMatchObject([{ fence: 2 }]);
  });

  it('that takes two workers with it is not run again: its next delivery only ends the request', async () => {
    await add('req_1');
    await takeAndDie();
    await waitForReturn('req_1');
    await takeAndDie();
    startWorker();

    await waitForEnd('req_1');

    expect(delivered).toMatchObject([{ fence: 3, endOnly: true }]);
  });

  it('that fails is not tried again by the queue', async () => {
    runPipeline = () => Promise.reject(new Error('Redis went away'));
    startWorker();
    await add('req_1');

    await waitForState('req_1', 'failed');

    expect(deliveries('req_1')).toHaveLength(1);
  });
});

describe('a lost lock', () => {
  it('is told, and the job is handed out again while its delivery goes on: the lease decides between them', async () => {
    const end = Promise.withResolvers<undefined>();
    runPipeline = () => end.promise;
    startWorker();
    await add('req_1');
    await waitForDeliveries('req_1', 1);

    await lab.redis.del(`${lab.keys.tag}:interactive:req_1:lock`);
    await waitForDeliveries('req_1', 2);

    expect(deliveries('req_1').map(({ fence }) => fence)).toEqual([1, 2]);
    expect(lost).toContain('req_1');
    end.resolve(undefined);
  });

  it('does not fail the job, however often it happens: its request may be answered', async () => {
    const end = Promise.withResolvers<undefined>();
    runPipeline = () => end.promise;
    startWorker();
    await add('req_1');
    await waitForDeliveries('req_1', 1);
    await lab.redis.hset(lab.keys.job('interactive', 'req_1'), 'stc', 1);

    await lab.redis.del(`${lab.keys.job('interactive', 'req_1')}:lock`);
    await waitForDeliveries('req_1', 2);
    end.resolve(undefined);

    await waitForEnd('req_1');
  });
});

describe('a delivery after the first', () => {
  const delivery = (requestId: string, fence: number) => ({ shard: SHARD, requestId, tenantId: 'ten_1', fence });
  const turnOf = (requestId: string, fence: number, hasReconnectedRecently = () => false) =>
    mayClaim({ requests: lab.requests, hasReconnectedRecently }, delivery(requestId, fence));

  it('gives its place back while the delivery that runs the request renews its lease, and no longer', async () => {
    const request = await lab.admit();
    const { requestId } = request;
    expect(await turnOf(requestId, 2)).toBe(true);
    await lab.run(request, 1);

    expect(await turnOf(requestId, 1)).toBe(true);
    expect(await turnOf(requestId, 2)).toBe(false);
    await lab.redis.hset(lab.keys.record(requestId), 'leased', 1);
    expect(await turnOf(requestId, 2)).toBe(true);
    await lab.requests.renew(request.ref(1), needs(0));
    expect(await turnOf(requestId, 2)).toBe(false);
  });

  it('waits while Redis has just come back: the lease may have run out although its worker lives', async () => {
    const request = await lab.admit();
    await lab.run(request, 1);
    await lab.redis.hset(lab.keys.record(request.requestId), 'leased', 1);
    let isBack = true;
    const turn = turnOf(request.requestId, 2, () => isBack);

    expect(await Promise.race([turn, pause(600, 'waits')])).toBe('waits');

    isBack = false;
    expect(await turn).toBe(true);
  });
});

describe('a worker', () => {
  it('takes nothing new at its close and waits for what runs', async () => {
    const end = Promise.withResolvers<undefined>();
    runPipeline = () => end.promise;
    const worker = startWorker();
    await add('req_1');
    await waitForDeliveries('req_1', 1);

    let isClosed = false;
    const closing = worker.close().then(() => (isClosed = true));
    const later = Array.from({ length: 20 }, (_, index) => `req_later_${index}`);
    for (const requestId of later) await add(requestId);
    expect(isClosed).toBe(false);
    end.resolve(undefined);
    await closing;

    expect(await jobOf('req_1')).toBeUndefined();
    // A fetch that was under way when the close began may still bring one.
    expect(delivered.length).toBeLessThanOrEqual(2);
    expect(await queue().getWaitingCount()).toBe(21 - delivered.length);
  });

  it('a worker runs no more at once than it may', async () => {
    let running = 0;
    let most = 0;
    runPipeline = async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    startWorker({ ...TIMINGS, lockMs: 10_000 }, 3);
    const ids = Array.from({ length: 30 }, (_, index) => `req_${index}`);

    await Promise.all(ids.map(add));
    await Promise.all(ids.map(waitForEnd));

    expect(most).toBeLessThanOrEqual(3);
  });

  it('shows by its canaries that it takes work, and cleans them up', async () => {
    const worker = startWorker();
    await waitUntil(() => worker.quietMs() > 150, 'a quiet moment');

    await waitUntil(() => worker.quietMs() < 100, 'a canary');

    expect(delivered).toEqual([]);
    const { completed, failed } = await queue().getJobCounts('completed', 'failed');
    expect([completed, failed]).toEqual([0, 0]);
  });

  it('is not one that an operator has paused', async () => {
    await queue().pause();
    const worker = startWorker();
    await waitUntil(() => worker.quietMs() > 150, 'a quiet moment');
    await waitUntil(() => worker.quietMs() < 100, 'a look at the queue');
    expect(await queue().getJobCounts('waiting')).toEqual({ waiting: 0 });
  });

  it('whose places are all taken is not called quiet, and one more place is used at once', async () => {
    const end = Promise.withResolvers<undefined>();
    runPipeline = () => end.promise;
    const worker = startWorker({ ...TIMINGS, lockMs: 10_000 }, 1);
    await add('req_1');
    await waitForDeliveries('req_1', 1);
    await add('req_2');

    expect(worker.quietMs()).toBe(0);
    expect(worker.meanMs()).toBeGreaterThan(0);
    worker.concurrency = 2;
    await waitForDeliveries('req_2', 1);

    end.resolve(undefined);
    await Promise.all(['req_1', 'req_2'].map(waitForEnd));
    expect(worker.quietMs()).toBeGreaterThan(0);
  });
});
