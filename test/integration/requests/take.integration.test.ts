import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Worker } from 'bullmq';
import type { Job } from 'bullmq';

import type { Tier } from '../../../shared/contracts/chat-request.ts';
import type { ChatJob } from '../../../shared/contracts/jobs.ts';
import { LOCK_MS, openJobLab } from '../../support/job-lab.ts';
import type { JobLab } from '../../support/job-lab.ts';
import { endingOf } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { waitFor } from '../../support/wait-for.ts';

const COST = { prompt: 10, completion: 5 };

let lab: JobLab;
let workers: Worker<ChatJob>[];
beforeEach(async () => {
  lab = await openJobLab();
  workers = [];
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.close(true)));
  await lab.close();
});

const jobKey = (id: string) => lab.keys.job('interactive', id);

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
        state: await (await lab.queue.getJob(id))?.getState(),
      };
    };
    const [theirs = ''] = await lab.queueUpSome(1);
    const job = await takeTheirWay();
    const [ours = ''] = await lab.queueUpSome(1);

    const [taken] = await lab.take(1);

    expect(await state(ours)).toEqual(await state(theirs));
    expect(await lab.redis.lrange(lab.keys.active('interactive'), 0, -1)).toEqual([ours, theirs]);
    expect(Object.fromEntries(pairsOf(taken?.fields ?? []))).toEqual(await lab.redis.hgetall(jobKey(ours)));
    expect(job.attemptsStarted).toBe(1);
  });

  it('claims each request as claim does, field by field', async () => {
    const [one, other] = [await lab.queueUp(), await lab.queueUp()];
    const claimed = await lab.requests.claim(one.ref(1));
    await lab.redis.zrem(lab.keys.prioritized('interactive'), one.requestId);

    const [taken] = await lab.take(1);

    const made = await lab.requests.claim(other.ref(1), taken);
    // Each has times, a turn and a name of its own.
    const alike = { owner: '', now: 0, remainingMs: 0, seq: 0, envelope: {}, delivery: {} };
    expect({ ...made, ...alike }).toEqual({ ...claimed, ...alike });
    const own = ['owner', 'startedAt', 'leased', 'acceptedAt', 'deadline', 'seq', 'startTag', 'tenant', 'key'];
    const shared = (record: Record<string, string>) =>
      Object.entries(record).filter(([name]) => !own.includes(name) && !name.startsWith('reader:'));
    expect(shared(await lab.recordOf(other.requestId))).toEqual(shared(await lab.recordOf(one.requestId)));
    expect((await lab.recordOf(other.requestId))['owner']).toBe(taken?.lock);
  });

  it('brings several jobs, those that were handed out before first, then by their turns', async () => {
    const ids = await lab.queueUpSome(3);
    await lab.queue.add('canary', { tenantId: '' }, { jobId: 'canary-1' });

    const taken = await lab.take(8);

    expect(taken.map(({ id }) => id)).toEqual(['canary-1', ...ids]);
    expect(taken.map(({ claim }) => claim !== undefined)).toEqual([false, true, true, true]);
    expect(await lab.take(8)).toEqual([]);
  });

  it('leaves the marker where more jobs wait, for other workers', async () => {
    await lab.queueUpSome(3);
    await lab.redis.del(lab.keys.marker('interactive'));
    expect(await lab.take(2)).toHaveLength(2);
    expect(await lab.hasMarker()).toBe(true);
    await lab.redis.del(lab.keys.marker('interactive'));
    expect(await lab.take(2)).toHaveLength(1);
    expect(await lab.hasMarker()).toBe(false);
  });

  it('never claims a request whose job was handed out before', async () => {
    const [id = ''] = await lab.queueUpSome(1);
    await takeTheirWay();
    await lab.redis.del(`${jobKey(id)}:lock`);
    await lab.redis.lrem(lab.keys.active('interactive'), 1, id);
    await lab.redis.rpush(lab.keys.wait('interactive'), id);

    const [taken] = await lab.take(1);

    expect(taken).toMatchObject({ id, claim: undefined });
    expect(await lab.recordOf(id)).toMatchObject({ state: 'accepted', fence: '0' });
  });

  it('hands out the others, claimed, where a record has what no script can read', async () => {
    const [first = '', broken = '', last = ''] = await lab.queueUpSome(3);
    await lab.redis.hset(lab.keys.record(broken), 'fence', 'none');

    const taken = await lab.take(8);

    expect(taken.map(({ id, claim }) => [id, claim !== undefined])).toEqual([
      [first, true],
      [broken, false],
      [last, true],
    ]);
  });

  it('claims nothing while Redis may have lost what other workers did', async () => {
    const [id = ''] = await lab.queueUpSome(1);
    lab.mayClaim = false;
    expect(await lab.take(1)).toMatchObject([{ id, claim: undefined }]);
    expect(await lab.recordOf(id)).toMatchObject({ state: 'accepted' });
  });

  it('leaves a request to its claim that has ended or lost its body', async () => {
    const [ended = '', bodiless = ''] = await lab.queueUpSome(2);
    await lab.redis.hset(lab.keys.record(ended), 'state', 'void');
    await lab.redis.del(lab.keys.body(bodiless));
    expect((await lab.take(8)).map(({ claim }) => claim)).toEqual([undefined, undefined]);
  });

  it('brings nothing of a paused queue, and leaves limits and delayed jobs to BullMQ', async () => {
    await lab.queueUpSome(1);
    await lab.queue.pause();
    expect(await lab.take(8)).toEqual([]);
    await lab.queue.resume();
    await lab.queue.setGlobalConcurrency(1);
    expect(await lab.jobs.take(8, LOCK_MS)).toBe('other');
    await lab.queue.removeGlobalConcurrency();
    await lab.queue.add('canary', { tenantId: '' }, { delay: 60_000 });
    expect(await lab.jobs.take(8, LOCK_MS)).toBe('other');
    expect(await lab.queue.getJobCounts('prioritized', 'active', 'delayed')).toEqual({
      ...{ prioritized: 1, active: 0, delayed: 1 },
    });
  });
});

describe('finishing', () => {
  async function finish({ requestId, principal, ...request }: LabRequest, owner: string) {
    const ending = { ...endingOf({ requestId, principal, ...request }, 'Hi', COST), endsJob: true };
    return lab.requests.finish({ ...request.ref(1), owner }, 0, ending);
  }

  it('leaves of a job what BullMQ leaves, so that an update of BullMQ cannot drift', async () => {
    /** BullMQ's events and its counter of them are read by nobody. */
    const left = async () => {
      const keys = await lab.redis.keys(`${lab.keys.tag}:interactive:*`);
      return keys.filter((key) => !/:(?:events|meta|marker)$/.test(key)).sort();
    };
    await lab.queueUpSome(1);
    const theirs = await takeTheirWay();
    await theirs.moveToCompleted(undefined, 'a token', false);
    const afterTheirs = await left();
    const request = await lab.queueUp();
    const [taken] = await lab.take(1);

    expect(await finish(request, taken?.lock ?? '')).toBe(true);

    expect(await left()).toEqual(afterTheirs);
    expect(afterTheirs).toEqual([]);
  });

  it("leaves its id among those that may have stalled, where BullMQ's next check drops it", async () => {
    const request = await lab.queueUp();
    const [taken] = await lab.take(1);
    await lab.redis.sadd(lab.keys.stalled('interactive'), request.requestId);
    await finish(request, taken?.lock ?? '');

    const stalled: string[] = [];
    const worker = plainWorker();
    worker.on('stalled', (id) => stalled.push(id));
    void worker.startStalledCheckTimer();
    const isChecked = async () => (await lab.redis.exists(lab.keys.stalled('interactive'))) === 0 || undefined;
    await waitFor(isChecked, "BullMQ's check");

    expect(stalled).toEqual([]);
    expect(await lab.queue.getJobCounts('wait', 'active', 'failed')).toEqual({ wait: 0, active: 0, failed: 0 });
  });

  it("leaves another worker's job alone, and ends the request all the same", async () => {
    const request = await lab.queueUp();
    const [taken] = await lab.take(1);
    await lab.redis.set(`${jobKey(request.requestId)}:lock`, 'another');

    expect(await finish(request, taken?.lock ?? '')).toBe(true);

    expect(await lab.redis.get(`${jobKey(request.requestId)}:lock`)).toBe('another');
    expect(await lab.queue.getJobCounts('active')).toEqual({ active: 1 });
    expect(await lab.recordOf(request.requestId)).toMatchObject({ state: 'done' });
  });
});

describe('taking while a tier is closed', () => {
  const idsOf = async (most: number, closed: readonly Tier[]) => {
    const taken = await lab.jobs.take(most, LOCK_MS, closed);
    return taken === 'other' ? [] : taken.map(({ id }) => id);
  };
  const setTier = (id: string, tier: Tier) => lab.redis.hset(lab.keys.record(id), 'tier', tier);

  it('passes over its requests, in order, and leaves the marker to those who have room for them', async () => {
    const [one = '', two = '', three = ''] = await lab.queueUpSome(3);
    await setTier(two, 'oloid');

    expect(await idsOf(8, ['mobius'])).toEqual([two]);
    expect(await lab.hasMarker()).toBe(true);
    expect(await idsOf(8, ['mobius'])).toEqual([]);
    // What comes meanwhile is found as well.
    const [four = ''] = await lab.queueUpSome(1);
    expect(await idsOf(8, ['mobius'])).toEqual([]);
    expect(await idsOf(8, ['oloid'])).toEqual([one, three, four]);
    expect(await idsOf(8, [])).toEqual([]);
  });

  it('takes those of all open tiers in the order in which they wait', async () => {
    const ids = await lab.queueUpSome(6);
    const [one = '', two = '', three = '', four = '', five = '', six = ''] = ids;
    await setTier(one, 'embedding');
    await setTier(three, 'moderation');
    await setTier(five, 'oloid');

    expect(await idsOf(4, ['oloid'])).toEqual([one, two, three, four]);
    expect(await idsOf(8, ['mobius'])).toEqual([five]);
    expect(await idsOf(8, ['embedding'])).toEqual([six]);
  });

  it('finds what was taken, or ended, since it last looked no longer', async () => {
    const [one = '', two = '', three = ''] = await lab.queueUpSome(3);
    expect(await idsOf(8, ['mobius'])).toEqual([]);
    expect(await idsOf(1, [])).toEqual([one]);
    await lab.redis.zrem(lab.keys.prioritized('interactive'), two);

    expect(await idsOf(8, ['oloid'])).toEqual([three]);
  });

  it('forgets the order by tier some time after all tiers are open', async () => {
    const index = `${lab.keys.prioritized('interactive')}:mobius`;
    await lab.queueUpSome(1);
    await idsOf(8, ['mobius']);
    expect(await lab.redis.pttl(index)).toBeGreaterThan(0);
    await lab.redis.hset(lab.keys.queueMeta('interactive'), 'tiers', Date.now() - 1);
    await lab.redis.del(index);

    const [, ours = ''] = [await lab.take(8), (await lab.queueUpSome(1))[0]];

    expect(await lab.redis.exists(index)).toBe(0);
    expect(await idsOf(8, ['oloid'])).toEqual([ours]);
  });
});

function pairsOf(list: readonly string[]): [string, string][] {
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? '']] : []));
}
