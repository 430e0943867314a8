import { afterEach, describe, expect, it } from '@jest/globals';
import { Worker } from 'bullmq';
import type { RedisQueueBackend } from 'bullmq';

import type { ChatJob } from '../../../shared/contracts/jobs.ts';
import { createChatBackend } from '../../../workers/queue/job-source.ts';
import { BOUNDLESS, LOCK_MS, openJobLab } from '../../support/job-lab.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { redisUrl } from '../../support/stores.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';
import { useEach } from '../../support/use-service.ts';

const workers: Worker<ChatJob>[] = [];
afterEach(() => Promise.all(workers.splice(0).map((worker) => worker.close(true))));
const lab = useEach('lab', openJobLab);

/** Takes up to eight at once and runs nothing by itself. */
function takingWorker(connection = lab.redis, bodiesUnitsMax?: number) {
  const backend = createChatBackend({
    ...(bodiesUnitsMax === undefined ? {} : { bodiesUnitsMax }),
    jobs: lab.jobs,
    room: BOUNDLESS,
    places: () => 8,
    lockMs: LOCK_MS,
    onError: () => undefined,
  });
  const made: RedisQueueBackend[] = [];
  const worker = new Worker<ChatJob, unknown, string>(
    ...(['interactive', null, { connection, prefix: lab.keys.tag, autorun: false }] as const),
    (...args) => {
      const queueBackend = backend.factory(...args);
      made.push(queueBackend);
      return queueBackend;
    },
  );
  workers.push(worker);
  const queueBackend = () => made[0] ?? backend.factory('interactive', { connection: lab.redis });
  return { worker, backend, queueBackend };
}

it('puts all jobs of a call back whose answer was lost, and which was sent again', async () => {
  const ids = await lab.queueUpSome(3);
  const proxy = await openTcpProxy(redisUrl());
  const far = lab.jobsOver(await lab.connect(proxy.url));
  // Its connection has nothing else to say from then on, so that the next answer is that of the call.
  await far.take(0, LOCK_MS);
  const lost = proxy.cutNextReply();

  const taken = await far.take(2, LOCK_MS);
  await lost;

  expect(taken).toEqual([]);
  expect(await lab.queue.getJobCounts('wait', 'active', 'prioritized')).toEqual({ wait: 3, active: 0, prioritized: 0 });
  expect((await lab.take(8)).map(({ id, claim }) => ({ id, isClaimed: claim !== undefined }))).toEqual(
    ids.map((id) => ({ id, isClaimed: true })),
  );
  await proxy.close();
});

describe('giving back', () => {
  it('puts jobs in front as if they had not been taken', async () => {
    const ids = await lab.queueUpSome(3);
    const before = await Promise.all(ids.map(lab.recordOf));
    const taken = await lab.take(8);
    await lab.redis.del(lab.keys.marker('interactive'));

    await lab.jobs.release(taken);
    await lab.jobs.release(taken);

    expect(await lab.queue.getJobCounts('wait', 'active')).toEqual({ wait: 3, active: 0 });
    expect(await lab.hasMarker()).toBe(true);
    // What its holds were raised to stays.
    const held = { hold: '', holdTokens: '' };
    const after = await Promise.all(ids.map(lab.recordOf));
    expect(after.map((record) => ({ ...record, ...held }))).toEqual(before.map((record) => ({ ...record, ...held })));
    const again = await lab.take(8);
    expect(again.map(({ id }) => id)).toEqual(ids);
    expect(again.every(({ claim }) => claim !== undefined)).toBe(true);
  });

  it('keeps what a worker was told before it started: that the request is cancelled, and that nobody pays', async () => {
    const request = await lab.queueUp();
    const { requestId, principal } = request;
    const taken = await lab.take(1);
    const last = { finishReason: 'cancelled', usage: { promptTokens: 0, completionTokens: 0 } } as const;
    expect(await lab.admissions.voidRefused(requestId, principal, last)).toBe('stopped');

    await lab.jobs.release(taken);

    expect((await lab.run(request, 1)).cancelled).toBe(true);
  });

  it('leaves a job that another worker has by now', async () => {
    const [id = ''] = await lab.queueUpSome(1);
    const taken = await lab.take(1);
    await lab.redis.set(`${lab.keys.job('interactive', id)}:lock`, 'another');
    await lab.jobs.release(taken);
    expect(await lab.queue.getJobCounts('wait', 'active')).toMatchObject({ wait: 0, active: 1 });
    expect(await lab.recordOf(id)).toMatchObject({ state: 'running' });
  });
});

describe('a worker that takes several', () => {
  it('puts back what it does not ask for: it was paused, or has fewer places by now', async () => {
    const ids = await lab.queueUpSome(3);
    const { worker } = takingWorker();
    await worker.getNextJob('a token', { block: false });
    await waitUntil(
      async () => (await lab.redis.llen(lab.keys.wait('interactive'))) === ids.length - 1,
      'the jobs to be back',
    );
  });

  it('puts back what it has not started when it stops, and takes nothing more', async () => {
    const ids = await lab.queueUpSome(5);
    const { worker, backend } = takingWorker();
    const first = await worker.getNextJob('a token', { block: false });
    expect(first.id).toBe(ids[0]);

    await backend.stop();

    expect(await lab.queue.getJobCounts('wait', 'active')).toMatchObject({ wait: 4, active: 1 });
    expect(await worker.getNextJob('another', { block: false })).toBeUndefined();
  });

  it('renews no lock of a job that ended with its request, while its delivery has yet to return', async () => {
    const [ended = '', running = ''] = await lab.queueUpSome(2);
    const { worker, backend } = takingWorker();
    for (const id of [ended, running]) await worker.getNextJob(`token of ${id}`, { block: false });
    const handed = backend.handed(`token of ${ended}`);
    if (handed !== undefined) handed.isEnded = true;
    await lab.redis.del(`${lab.keys.job('interactive', ended)}:lock`);
    await lab.redis.pexpire(`${lab.keys.job('interactive', running)}:lock`, 1_000);

    const ids = [ended, running];
    const failed = await worker.extendJobLocks(
      ids,
      ids.map((id) => `token of ${id}`),
      LOCK_MS,
    );

    expect(failed).toEqual([]);
    expect(await lab.redis.pttl(`${lab.keys.job('interactive', running)}:lock`)).toBeGreaterThan(1_000);
  });

  it('has a lock for each delivery: one that comes back late does not end the job of the next', async () => {
    const [id = ''] = await lab.queueUpSome(1);
    const { worker } = takingWorker();
    const late = await worker.getNextJob('late', { block: false });
    await lab.redis.del(`${lab.keys.job('interactive', id)}:lock`);
    await lab.redis.lrem(lab.keys.active('interactive'), 1, id);
    await lab.redis.rpush(lab.keys.wait('interactive'), id);
    // The call before has brought fewer jobs than were asked for.
    expect(await worker.getNextJob('nothing', { block: false })).toBeUndefined();
    const next = await worker.getNextJob('next', { block: false });
    expect([late.id, late.attemptsStarted, next.id, next.attemptsStarted]).toEqual([id, 1, id, 2]);

    await expect(late.moveToCompleted(undefined, 'late', false)).rejects.toThrow(/Lock mismatch/);

    expect(await lab.queue.getJobCounts('active')).toEqual({ active: 1 });
    await next.moveToCompleted(undefined, 'next', false);
    expect(await lab.queue.getJobCounts('active')).toEqual({ active: 0 });
  });

  it('finds what came after a call that brought fewer jobs, however it comes to wait for the marker', async () => {
    const [first = ''] = await lab.queueUpSome(1);
    const { worker, queueBackend } = takingWorker();
    expect((await worker.getNextJob('one', { block: false })).id).toBe(first);
    const [second = ''] = await lab.queueUpSome(1);

    expect(await queueBackend().waitForJob(1)).toEqual({ member: '0', score: 0 });

    expect((await worker.getNextJob('other', { block: false })).id).toBe(second);
  });

  it('waits for no marker while it has jobs of its last call', async () => {
    const [, second] = await lab.queueUpSome(2);
    const { worker, queueBackend } = takingWorker();
    await worker.getNextJob('one', { block: false });
    await lab.redis.del(lab.keys.marker('interactive'));

    expect(await queueBackend().waitForJob(1)).toEqual({ member: '0', score: 0 });

    expect((await worker.getNextJob('other', { block: false })).id).toBe(second);
  });

  it('starts what a call brought before it waits for the next call, although more wait', async () => {
    const ids = await lab.queueUpSome(18);
    const started: string[] = [];
    const startedBefore: string[][] = [];
    const jobs = {
      ...lab.jobs,
      async take(most: number, lockMs: number) {
        // A Redis that is busy with a burst answers late: what the call before has brought runs by then.
        if (startedBefore.length > 0)
          await waitUntil(() => started.length >= startedBefore.length * 8, 'the jobs to start');
        startedBefore.push([...started]);
        return lab.jobs.take(most, lockMs);
      },
    };
    const backend = createChatBackend({
      jobs,
      room: BOUNDLESS,
      places: () => 64,
      lockMs: LOCK_MS,
      onError: () => undefined,
    });
    const over = Promise.withResolvers<undefined>();
    const worker = new Worker<ChatJob, unknown, string>(
      'interactive',
      (job) => {
        started.push(job.id ?? '');
        return over.promise;
      },
      { connection: lab.redis, prefix: lab.keys.tag, concurrency: 64 },
      backend.factory,
    );
    workers.push(worker);

    await waitUntil(() => started.length === ids.length, 'all jobs to start');

    expect(started).toEqual(ids);
    expect(startedBefore.slice(0, 3)).toEqual([[], ids.slice(0, 8), ids.slice(0, 16)]);
    over.resolve(undefined);
  });

  it('takes no more while the bodies of what runs have all the memory that they may, and leaves the marker to others', async () => {
    await lab.queueUpSome(9);
    const { worker, queueBackend } = takingWorker(lab.redis, 1);
    const eight = [];
    while (eight.length < 8) eight.push(await worker.getNextJob(`${eight.length}`, { block: false }));
    const ask = () => worker.getNextJob('ninth', { block: false });

    expect([await ask(), await ask()]).toEqual([undefined, undefined]);
    expect(await queueBackend().waitForJob(1)).toBeDefined();
    expect(await lab.redis.exists(lab.keys.marker('interactive'))).toBe(1);

    for (const [at, job] of eight.entries()) await job.moveToFailed(new Error('over'), `${at}`, false);
    expect(await waitFor(ask, 'the ninth')).toBeDefined();
  });

  it('does not take the end of a kept job for an empty queue', async () => {
    await lab.queueUpSome(2);
    const { worker } = takingWorker();
    const kept = await worker.getNextJob('kept', { block: false });
    const failed = await worker.getNextJob('failed', { block: false });

    expect(await kept.moveToCompleted({ tier: 'mobius' }, 'kept', true)).toBeUndefined();
    expect(await failed.moveToFailed(new Error('timeout'), 'failed', true)).toBeUndefined();
  });

  it('fails a job under its own lock once Redis is back, when the connection was lost at its end', async () => {
    const [id = ''] = await lab.queueUpSome(1);
    const connection = await lab.connect(redisUrl());
    const { worker } = takingWorker(connection);
    worker.on('error', () => undefined);
    const job = await worker.getNextJob('token', { block: false });
    connection.disconnect();
    await waitUntil(() => connection.status === 'end', 'the end of the connection');
    const failing = () => job.moveToFailed(new Error('timeout'), 'token', false);
    await expect(failing()).rejects.toThrow('Connection is closed');
    await connection.connect();

    await failing();

    expect(await lab.queue.getJobCounts('active', 'failed')).toEqual({ active: 0, failed: 1 });
    expect((await lab.queue.getJob(id))?.failedReason).toBe('timeout');
  });
});
