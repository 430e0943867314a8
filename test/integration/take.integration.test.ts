import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Worker } from 'bullmq';
import type { Job } from 'bullmq';

import type { ChatJob } from '../../shared/contracts/jobs.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import { createChatBackend } from '../../shared/infra/queue/chat-backend.ts';
import { createChatQueues } from '../../shared/infra/queue/chat-queue.ts';
import type { ChatQueues } from '../../shared/infra/queue/chat-queue.ts';
import { createJobStore } from '../../shared/infra/redis/requests/job-store.ts';
import type { JobStore } from '../../shared/infra/redis/requests/job-store.ts';
import { createLineStore } from '../../shared/infra/redis/requests/line-store.ts';
import { endingOf, LEASE_MS, openRequestLab, REQUEST_TIMEOUT_MS, SHARD } from '../support/request-lab.ts';
import type { LabRequest, RequestLab } from '../support/request-lab.ts';

const LOCK_MS = 10_000;
const COST = { prompt: 10, completion: 5 };

let lab: RequestLab;
let queues: ChatQueues;
let jobs: JobStore;
let mayClaim: boolean;
let tenant: Principal | undefined;
let workers: Worker<ChatJob>[];
beforeEach(async () => {
  lab = await openRequestLab();
  queues = createChatQueues(lab.redis, lab.keyspace, () => undefined);
  mayClaim = true;
  tenant = undefined;
  workers = [];
  jobs = createJobStore(lab.redis, lab.keyspace, {
    ...{ shard: SHARD, queue: 'interactive' },
    claims: { leaseMs: LEASE_MS, areAllowed: () => mayClaim },
  });
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.close(true)));
  await queues.close();
  await lab.close();
});

const queue = () => queues.queue(SHARD, 'interactive');
const jobKey = (id: string) => lab.keys.job('interactive', id);
const recordOf = (id: string) => lab.redis.hgetall(lab.keys.record(id));
const lockOf = (id: string) => lab.redis.get(`${jobKey(id)}:lock`);
const hasMarker = async () => (await lab.redis.exists(lab.keys.marker('interactive'))) === 1;

/** Admitted, and in line: one tenant's, in the order of acceptance. */
async function queueUp(): Promise<LabRequest> {
  const request = await lab.admit({ withoutBody: true, principal: (tenant ??= await lab.tenant()) });
  const { requestId, principal, envelope } = request;
  const body = JSON.stringify(envelope);
  await createLineStore(lab.redis, lab.keyspace, REQUEST_TIMEOUT_MS).enqueue(SHARD, 'interactive', {
    ...{ requestId, tenantId: principal.tenantId, body },
  });
  return request;
}

async function queueUpSome(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) ids.push((await queueUp()).requestId);
  return ids;
}

async function take(most: number) {
  const taken = await jobs.take(most, LOCK_MS);
  if (taken === 'other') throw new Error('Nothing was handed out.');
  return taken;
}

/** BullMQ's own, which runs nothing by itself. */
function plainWorker(): Worker<ChatJob> {
  const worker = new Worker<ChatJob>('interactive', null, {
    ...{ connection: lab.redis, prefix: lab.keys.tag, lockDuration: LOCK_MS, autorun: false },
    removeOnComplete: { count: 0 },
  });
  workers.push(worker);
  return worker;
}

async function takeTheirWay(): Promise<Job<ChatJob>> {
  const job = (await plainWorker().getNextJob('a token', { block: false })) as Job<ChatJob> | undefined;
  if (job === undefined) throw new Error('BullMQ has handed out nothing.');
  return job;
}

describe('taking', () => {
  it('makes of a job, field by field, what BullMQ makes of it, so that an update of BullMQ cannot drift', async () => {
    const state = async (id: string) => {
      const { timestamp, processedOn, opts = '{}', data, ...rest } = await lab.redis.hgetall(jobKey(id));
      return {
        ...{ ...rest, hasData: data?.includes('tenantId') },
        opts: { ...(JSON.parse(opts) as object), jobId: 'req' },
        isNew: [timestamp, processedOn].every((time) => Math.abs(Number(time) - Date.now()) < 60_000),
        isLocked: Math.round((await lab.redis.pttl(`${jobKey(id)}:lock`)) / 1_000) === LOCK_MS / 1_000,
        state: await (await queue().getJob(id))?.getState(),
      };
    };
    const [theirs = ''] = await queueUpSome(1);
    const job = await takeTheirWay();
    const [ours = ''] = await queueUpSome(1);

    const [taken] = await take(1);

    expect(await state(ours)).toEqual(await state(theirs));
    expect(await lab.redis.lrange(lab.keys.active('interactive'), 0, -1)).toEqual([ours, theirs]);
    expect(Object.fromEntries(pairsOf(taken?.fields ?? []))).toEqual(await lab.redis.hgetall(jobKey(ours)));
    expect(job.attemptsStarted).toBe(1);
  });

  it('claims each request as claim does, field by field', async () => {
    const [one, other] = [await queueUp(), await queueUp()];
    const claimed = await lab.requests.claim(SHARD, one.requestId, one.principal.tenantId, 1);
    await lab.redis.zrem(lab.keys.line('interactive'), one.requestId);

    const [taken] = await take(1);

    const made = await lab.requests.claim(SHARD, other.requestId, other.principal.tenantId, 1, taken?.claim);
    // Each has times, a turn and a name of its own.
    const alike = { owner: '', now: 0, remainingMs: 0, seq: 0, envelope: {} };
    expect({ ...made, ...alike }).toEqual({ ...claimed, ...alike });
    const own = ['owner', 'startedAt', 'leased', 'acceptedAt', 'deadline', 'seq', 'turn', 'tenant', 'key'];
    const shared = (record: Record<string, string>) =>
      Object.entries(record).filter(([name]) => !own.includes(name) && !name.startsWith('reader:'));
    expect(shared(await recordOf(other.requestId))).toEqual(shared(await recordOf(one.requestId)));
    expect((await recordOf(other.requestId))['owner']).toBe(taken?.claim?.owner);
  });

  it('brings several jobs, those that were handed out before first, then by their turns', async () => {
    const ids = await queueUpSome(3);
    await queue().add('canary', { tenantId: '' }, { jobId: 'canary-1' });

    const taken = await take(8);

    expect(taken.map(({ id }) => id)).toEqual(['canary-1', ...ids]);
    expect(taken.map(({ claim }) => claim !== undefined)).toEqual([false, true, true, true]);
    expect(new Set(taken.map(({ claim }) => claim?.owner)).size).toBe(4);
    expect(await take(8)).toEqual([]);
  });

  it('leaves the marker where more jobs wait, for other workers', async () => {
    await queueUpSome(3);
    await lab.redis.del(lab.keys.marker('interactive'));
    expect(await take(2)).toHaveLength(2);
    expect(await hasMarker()).toBe(true);
    await lab.redis.del(lab.keys.marker('interactive'));
    expect(await take(2)).toHaveLength(1);
    expect(await hasMarker()).toBe(false);
  });

  it('never claims a request whose job was handed out before', async () => {
    const [id = ''] = await queueUpSome(1);
    await takeTheirWay();
    await lab.redis.del(`${jobKey(id)}:lock`);
    await lab.redis.lrem(lab.keys.active('interactive'), 1, id);
    await lab.redis.rpush(lab.keys.waiting('interactive'), id);

    const [taken] = await take(1);

    expect(taken).toMatchObject({ id, claim: undefined });
    expect(await recordOf(id)).toMatchObject({ state: 'accepted', fence: '0' });
  });

  it('claims nothing while Redis may have lost what other workers did', async () => {
    const [id = ''] = await queueUpSome(1);
    mayClaim = false;
    expect(await take(1)).toMatchObject([{ id, claim: undefined }]);
    expect(await recordOf(id)).toMatchObject({ state: 'accepted' });
  });

  it('leaves a request to its claim that has ended or lost its body', async () => {
    const [ended = '', bodiless = ''] = await queueUpSome(2);
    await lab.redis.hset(lab.keys.record(ended), 'state', 'void');
    await lab.redis.del(lab.keys.body(bodiless));
    expect((await take(8)).map(({ claim }) => claim)).toEqual([undefined, undefined]);
  });

  it('brings nothing of a paused queue, and leaves limits and delayed jobs to BullMQ', async () => {
    await queueUpSome(1);
    await queue().pause();
    expect(await take(8)).toEqual([]);
    await queue().resume();
    await queue().setGlobalConcurrency(1);
    expect(await jobs.take(8, LOCK_MS)).toBe('other');
    await queue().removeGlobalConcurrency();
    await queue().add('canary', { tenantId: '' }, { delay: 60_000 });
    expect(await jobs.take(8, LOCK_MS)).toBe('other');
    expect(await queue().getJobCounts('prioritized', 'active', 'delayed')).toEqual({
      ...{ prioritized: 1, active: 0, delayed: 1 },
    });
  });
});

describe('giving back', () => {
  it('puts jobs in front as if they had not been taken', async () => {
    const ids = await queueUpSome(3);
    const before = await Promise.all(ids.map(recordOf));
    const taken = await take(8);
    await lab.redis.del(lab.keys.marker('interactive'));

    await jobs.giveBack(taken);
    await jobs.giveBack(taken);

    expect(await queue().getJobCounts('wait', 'active')).toEqual({ wait: 3, active: 0 });
    expect(await hasMarker()).toBe(true);
    // What its holds were raised to stays.
    const held = { hold: '', holdTokens: '' };
    const after = await Promise.all(ids.map(recordOf));
    expect(after.map((record) => ({ ...record, ...held }))).toEqual(before.map((record) => ({ ...record, ...held })));
    const again = await take(8);
    expect(again.map(({ id }) => id)).toEqual(ids);
    expect(again.every(({ claim }) => claim !== undefined)).toBe(true);
  });

  it('leaves a job that another worker has by now', async () => {
    const [id = ''] = await queueUpSome(1);
    const taken = await take(1);
    await lab.redis.set(`${jobKey(id)}:lock`, 'another');
    await jobs.giveBack(taken);
    expect(await queue().getJobCounts('wait', 'active')).toMatchObject({ wait: 0, active: 1 });
    expect(await recordOf(id)).toMatchObject({ state: 'running' });
  });
});

describe('a worker that takes several', () => {
  it('puts back what it has not started when it stops, and takes nothing more', async () => {
    const ids = await queueUpSome(5);
    const backend = createChatBackend({ jobs, places: () => 8, lockMs: LOCK_MS, onError: () => undefined });
    const worker = new Worker<ChatJob, unknown, string>(
      ...(['interactive', null, { connection: lab.redis, prefix: lab.keys.tag, autorun: false }] as const),
      backend.factory,
    );
    const first = await worker.getNextJob('a token', { block: false });
    expect(first.id).toBe(ids[0]);

    await backend.stop();

    expect(await queue().getJobCounts('wait', 'active')).toMatchObject({ wait: 4, active: 1 });
    expect(await worker.getNextJob('another', { block: false })).toBeUndefined();
    await worker.close(true);
  });
});

describe('finishing', () => {
  async function finish({ requestId, principal, ...request }: LabRequest, owner: string | undefined, jobLock: string) {
    const ending = { ...endingOf({ requestId, principal, ...request }, 'Hi', COST), jobLock };
    return lab.requests.finish({ ...request.ref(1), ...(owner === undefined ? {} : { owner }) }, 0, ending);
  }

  it('leaves of a job what BullMQ leaves, so that an update of BullMQ cannot drift', async () => {
    /** BullMQ's events and its counter of them are read by nobody. */
    const left = async () => {
      const keys = await lab.redis.keys(`${lab.keys.tag}:interactive:*`);
      return keys.filter((key) => !/:(?:events|meta|marker)$/.test(key)).sort();
    };
    await queueUpSome(1);
    const theirs = await takeTheirWay();
    await lab.redis.sadd(lab.keys.stalled('interactive'), String(theirs.id));
    await theirs.moveToCompleted(undefined, 'a token', false);
    const afterTheirs = await left();
    const request = await queueUp();
    const [taken] = await take(1);
    await lab.redis.sadd(lab.keys.stalled('interactive'), request.requestId);

    expect(await finish(request, taken?.claim?.owner, taken?.lock ?? '')).toBe(true);

    expect(await left()).toEqual(afterTheirs);
    expect(afterTheirs).toEqual([]);
  });

  it("leaves another worker's job alone, and ends the request all the same", async () => {
    const request = await queueUp();
    const [taken] = await take(1);
    await lab.redis.set(`${jobKey(request.requestId)}:lock`, 'another');

    expect(await finish(request, taken?.claim?.owner, taken?.lock ?? '')).toBe(true);

    expect(await lockOf(request.requestId)).toBe('another');
    expect(await queue().getJobCounts('active')).toEqual({ active: 1 });
    expect(await recordOf(request.requestId)).toMatchObject({ state: 'done' });
  });
});

function pairsOf(list: readonly string[]): [string, string][] {
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? '']] : []));
}
