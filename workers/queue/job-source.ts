/**
 * The door of BullMQ: it runs jobs, but takes them from here, one at a time, through its `backendFactory`.
 *
 * - Requests wait in BullMQ's set of prioritized jobs, scored by their tenants' start tags
 *   (docs/decisions/0004-fair-queueing.md). `take.lua` hands out up to eight, in that order, after jobs that BullMQ
 *   hands out again, and claims those that start for the first time. It passes over tiers whose providers are full.
 * - Jobs that have not started go back to the front when the worker stops or is paused, and when a reconnect may have
 *   made Redis take twice. Every call has its own lock, so a worker gives back only what that call took.
 * - The fence is `attemptsStarted`, which rises with every delivery, stalled ones included. `attempts` is 1: the
 *   pipeline does its own retries.
 * - A lock lasts 10 s, and stalls are looked for every 3 s, so a killed worker's jobs start again within about 13 s;
 *   with BullMQ's defaults it would be 90. A lost lock does not stop the job: the lease decides who owns the request
 *   (docs/decisions/0005-fencing-and-leases.md).
 *
 * A queue with what only BullMQ's own script can hand out, such as a delayed job, is left to BullMQ for that call.
 */

import { createRedisBackend, isNotConnectionError, raw2NextJobData } from 'bullmq';
import type { BackendFactory, RedisQueueBackend } from 'bullmq';

import type { Tier } from '../../shared/contracts/chat-request.ts';
import type { QueueName } from '../../shared/contracts/jobs.ts';
import { randomBase62 } from '../../shared/lifecycle/ids.ts';
import { MARKER, fieldsOfFirstStart } from '../../shared/queue/bullmq-layout.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import { defineScript } from '../../shared/redis/scripts.ts';
import type { ScriptReply } from '../../shared/redis/scripts.ts';
import type { QueueRoom, Room } from '../pipeline/capacities.ts';

export interface TakenJob {
  id: string;
  /** The fields of BullMQ's hash, names and values in turn. */
  fields: string[];
  /** The value of the job's lock, which proves that this worker has it, and names its claim of the request. */
  lock: string;
  /** The reply of the claim that was made with the job. Undefined: the request has yet to be claimed. */
  claim: ScriptReply[] | undefined;
}

export type JobStore = ReturnType<typeof createJobStore>;

export interface ClaimSettings {
  leaseMs: number;
  /** True while requests may be claimed as their jobs are taken. */
  areAllowed: (shard: number) => boolean;
}

function toTaken(job: ScriptReply, queue: QueueName, { lock, now }: { lock: string; now: number }): TakenJob {
  const [requestId, fields, claim, timestamp, tenantId] = Array.isArray(job) ? job : [];
  const id = String(requestId);
  if (!Array.isArray(claim))
    return { id, fields: Array.isArray(fields) ? fields.map(String) : [], lock, claim: undefined };
  const first = { tenantId: String(tenantId), timestamp: String(timestamp), now };
  return { id, fields: fieldsOfFirstStart(queue, id, first), lock, claim };
}

function createRelease(client: RedisClient, keys: ReturnType<Keyspace['shard']>, queue: QueueName) {
  const release = defineScript(client, 'release-jobs');

  async function releaseAll(lock: string, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await release(
      [keys.wait(queue), keys.active(queue), keys.queueMeta(queue), keys.marker(queue)],
      [lock, keys.job(queue, ''), keys.record(''), ...ids],
    );
  }

  /**
   * Releases jobs that ioredis, repeating a call on a broken connection, made Redis take twice: this worker knows of
   * one time. Redis may have come back without what other workers did, so the jobs of both times go back.
   */
  async function releaseLost(lock: string): Promise<void> {
    // That list begins with the latest.
    const active = await client.lrange(keys.active(queue), 0, -1);
    await releaseAll(lock, active.reverse());
  }

  return { releaseAll, releaseLost };
}

/** `client`: on a cluster, a connection to the master of the shard. `claims` undefined: jobs are taken only. */
export function createJobStore(
  client: RedisClient,
  keyspace: Keyspace,
  { shard, queue, claims }: { shard: number; queue: QueueName; claims: ClaimSettings | undefined },
) {
  const take = defineScript(client, 'take');
  const keys = keyspace.shard(shard);
  const { releaseAll, releaseLost } = createRelease(client, keys, queue);
  const taking = [
    keys.wait(queue),
    keys.prioritized(queue),
    keys.active(queue),
    keys.queueMeta(queue),
    keys.marker(queue),
    keys.delayed(queue),
    keys.priorityCounter(queue),
    keys.inflight,
  ];
  const prefixes = [keys.job(queue, ''), keys.record(''), keys.body(''), keys.account('')];

  let breaks = 0;
  client.on('close', () => (breaks += 1));

  return {
    /** Returns jobs of no closed tier; fewer than `most` if no more wait. `other`: only BullMQ can hand out any. */
    async take(most: number, lockMs: number, closed: readonly Tier[] = []): Promise<TakenJob[] | 'other'> {
      const lock = randomBase62(12);
      const leaseMs = claims?.areAllowed(shard) === true ? claims.leaseMs : '';
      const breaksBefore = breaks;
      const now = Date.now();
      const reply = await take(taking, [most, lock, lockMs, now, leaseMs, ...prefixes, ...closed]);
      if (breaks !== breaksBefore) {
        // If this fails BullMQ hands them out again when their locks run out.
        await releaseLost(lock).catch(() => undefined);
        return [];
      }
      if (!Array.isArray(reply)) return 'other';
      return reply.map((job) => toTaken(job, queue, { lock, now }));
    },

    /** Tells other workers that something may wait. */
    async mark(): Promise<void> {
      await client.zadd(keys.marker(queue), MARKER.score, MARKER.member);
    },

    /** Jobs that another worker has by now stay with it. */
    async release(jobs: readonly TakenJob[]): Promise<void> {
      for (const lock of new Set(jobs.map((job) => job.lock)))
        await releaseAll(
          lock,
          jobs.filter((job) => job.lock === lock).map(({ id }) => id),
        );
    },
  };
}

/** While there is no room for some of what waits, the others' room is looked at again after this time, or sooner. */
const LOOK_MS = { 'some tiers': 100, 'all tiers': 1_000, bodies: 100 } as const;

/** Undefined `found`: bodies make jobs wait. */
function shutBy(found: Room | undefined): 'nothing' | keyof typeof LOOK_MS {
  if (found === undefined) return 'bodies';
  if (found.most === 0) return 'all tiers';
  return found.closed.length > 0 ? 'some tiers' : 'nothing';
}

/** Jobs taken in one call. More would hardly save calls, and other workers should get their part. */
const TAKE_MAX = 8;
/** Jobs go back after this time without a question: BullMQ is paused, closing, or has fewer places by now. */
const LEFT_MS = 500;

interface TakenJobsDeps {
  jobs: JobStore;
  room: QueueRoom;
  /** The bodies of what runs take all the memory that they may. */
  isHeavy: () => boolean;
  lockMs: number;
  onError: (error: unknown) => void;
}

function createLeftJobs({ jobs, room, onError }: Omit<TakenJobsDeps, 'isHeavy'>) {
  let left: TakenJob[] = [];
  let timer: NodeJS.Timeout | undefined;

  async function release(): Promise<void> {
    clearTimeout(timer);
    const unstarted = left;
    left = [];
    if (unstarted.length === 0) return;
    room.placed(unstarted.length);
    await jobs.release(unstarted);
  }

  return {
    release,
    isEmpty: (): boolean => left.length === 0,
    next(): TakenJob | undefined {
      const job = left.shift();
      if (left.length === 0) clearTimeout(timer);
      return job;
    },
    put(taken: TakenJob[]): void {
      clearTimeout(timer);
      left = taken;
      timer = setTimeout(() => {
        release().catch(onError);
      }, LEFT_MS).unref();
    },
  };
}

/**
 * A worker starts no job before it hears that there are no more, or has as many as it may run. So the question after a
 * call's last job is answered with "none": otherwise the first jobs of a burst would wait for all further calls. After
 * a call that brought fewer jobs than asked for, the queue is empty, and the worker waits for the marker. After a full
 * call it hears at once that jobs wait, and asks again while its jobs start.
 */
function createTakenJobs(deps: TakenJobsDeps) {
  const { jobs, room, isHeavy, lockMs } = deps;
  const left = createLeftJobs(deps);
  /** The next question is answered with none, so that the worker starts the jobs of the last call. */
  let isHandedOut = false;
  let wasFull = false;
  let isStopped = false;
  let closed: 'nothing' | keyof typeof LOOK_MS = 'nothing';
  let hasMarker = false;

  return {
    /** `most`: at least 1. `none`: start those you have. `other`: only BullMQ can hand out what waits. */
    async next(most: number): Promise<TakenJob | 'none' | 'other'> {
      const waiting = left.next();
      if (waiting !== undefined) return waiting;
      if (isHandedOut || isStopped) {
        isHandedOut = false;
        return 'none';
      }
      const found = isHeavy() ? undefined : await room.look(Math.min(TAKE_MAX, most));
      closed = shutBy(found);
      const gotMarker = hasMarker;
      hasMarker = false;
      if (found === undefined || found.most === 0) {
        if (gotMarker) await jobs.mark();
        return 'none';
      }
      const taken = await jobs.take(found.most, lockMs, found.closed);
      if (taken === 'other') return 'other';
      room.took(taken.length, found);
      left.put(taken);
      // `stop` may have been called meanwhile, which the type checker cannot see.
      if (isStopped as boolean) {
        await left.release();
        return 'none';
      }
      isHandedOut = taken.length > 0;
      wasFull = taken.length === found.most;
      return left.next() ?? 'none';
    },

    /** The worker has heard that there are no more. True: there may be, so it need not wait for the marker. Asked once. */
    mayHaveMore(): boolean {
      isHandedOut = false;
      const mayBe = !left.isEmpty() || wasFull;
      wasFull = false;
      return mayBe;
    },

    /** Waiting jobs for which there was no room when the worker asked last. */
    shut: () => closed,

    /** The worker waited for the marker and got it; nobody else can until it is set again. */
    recordMarker(): void {
      hasMarker = true;
    },

    /** Takes no more jobs, and puts back those that were not handed out. */
    stop(): Promise<void> {
      isStopped = true;
      return left.release();
    },
  };
}

/** Does what BullMQ does for a worker of chat requests, in fewer calls (docs/decisions/0005-fencing-and-leases.md). */
export type ChatBackend = ReturnType<typeof createChatBackend>;

interface HandedJob {
  lock: string;
  claim: ScriptReply[] | undefined;
  /** The request has a place at its provider, or waits for one there. */
  placed(): void;
  /** The job ended with its request, so BullMQ need not end it. */
  isEnded: boolean;
}

export interface ChatBackendDeps {
  jobs: JobStore;
  room: QueueRoom;
  places: () => number;
  lockMs: number;
  onError: (error: unknown) => void;
  bodiesUnitsMax?: number;
}

/**
 * UTF-16 units, for each queue. A body is in memory about three times: as it came, as it was read, and as its provider
 * gets it. A line of a batch may have 20 MiB.
 */
const BODIES_UNITS_MAX = 256 * 1024 * 1024;

const bodyUnits = ({ claim }: HandedJob): number => (typeof claim?.[1] === 'string' ? claim[1].length : 0);

/** Drops the claim as well: a table that a map has outgrown keeps its values alive until V8's next full collection. */
function forget(handed: Map<string, HandedJob>, token: string): void {
  const job = handed.get(token);
  if (job !== undefined) {
    job.claim = undefined;
    job.placed();
  }
  handed.delete(token);
}

/** A request that was taken is placed once. */
function placeOnce(room: QueueRoom): () => void {
  let isPlaced = false;
  return () => {
    if (!isPlaced) room.placed(1);
    isPlaced = true;
  };
}

/** Ends jobs, and extends their locks, under the locks with which they were taken instead of BullMQ's tokens. */
function endByToken(backend: RedisQueueBackend, handed: Map<string, HandedJob>): void {
  const moveToCompleted = backend.moveToCompleted.bind(backend);
  const moveToFailed = backend.moveToFailed.bind(backend);
  const extendLocks = backend.extendLocks.bind(backend);
  const lockOf = (token: string) => handed.get(token)?.lock ?? token;

  // `false`: BullMQ fetches no next job, so that each token is one job. The result is undefined, as the worker would take
  // one without a job for an empty queue.
  backend.moveToCompleted = async (job, value, keep, token) => {
    const isEnded = handed.get(token)?.isEnded === true;
    const finishedOn = isEnded
      ? Date.now()
      : (await moveToCompleted(job, value, keep, lockOf(token), false)).finishedOn;
    forget(handed, token);
    return { result: undefined, finishedOn };
  };

  backend.moveToFailed = async (job, reason, keep, token, _fetchNext, fields) => {
    const failing = moveToFailed(job, reason, keep, lockOf(token), false, fields);
    const { finishedOn } = await failing.catch((error: unknown) => {
      // Once Redis is back BullMQ asks again, under the same token.
      if (!(error instanceof Error) || isNotConnectionError(error)) forget(handed, token);
      throw error;
    });
    forget(handed, token);
    return { result: undefined, finishedOn };
  };

  backend.extendLocks = async (ids, tokens, duration) => {
    const open = ids.flatMap((id, index) => {
      const token = tokens[index] ?? '';
      return handed.get(token)?.isEnded === true ? [] : [{ id, lock: lockOf(token) }];
    });
    if (open.length === 0) return [];
    return extendLocks(
      open.map(({ id }) => id),
      open.map(({ lock }) => lock),
      duration,
    );
  };
}

/**
 * Gives BullMQ's Worker, which asks for one job at a time, those of one call in turn. BullMQ stays in charge of stalled
 * jobs, locks, pauses, canaries, drain, jobs that are kept for Bull Board, and what this does not know.
 */
export function createChatBackend(deps: ChatBackendDeps) {
  const { jobs, room, places, lockMs, onError, bodiesUnitsMax = BODIES_UNITS_MAX } = deps;
  /** By the token of BullMQ's question, under which the worker knows the job. */
  const handed = new Map<string, HandedJob>();
  const isHeavy = () => Array.from(handed.values()).reduce((sum, job) => sum + bodyUnits(job), 0) > bodiesUnitsMax;
  const taken = createTakenJobs({ jobs, room, isHeavy, lockMs, onError });
  const stopped = Promise.withResolvers<undefined>();

  const factory: BackendFactory<RedisQueueBackend> = (name, options, more) => {
    const backend = createRedisBackend(name, options, more);
    const moveToActive = backend.moveToActive.bind(backend);
    const waitForJob = backend.waitForJob.bind(backend);

    backend.moveToActive = async (token, workerName) => {
      const job = await taken.next(Math.max(1, places() - handed.size));
      if (job === 'none') return [];
      if (job !== 'other') {
        handed.set(token, { lock: job.lock, claim: job.claim, placed: placeOnce(room), isEnded: false });
        const found: unknown[] = raw2NextJobData([job.fields, job.id, 0, 0]);
        return found;
      }
      const theirs: unknown[] = await moveToActive(token, workerName);
      if (theirs[0] !== null)
        handed.set(token, { lock: token, claim: undefined, placed: () => undefined, isEnded: false });
      return theirs;
    };

    // A worker that waits for the marker has heard that there are no more jobs.
    // One that has no room leaves the marker to the others.
    backend.waitForJob = async (timeout) => {
      if (taken.mayHaveMore()) return MARKER;
      const shut = taken.shut();
      if (shut === 'nothing') {
        const marker = await waitForJob(timeout);
        if (marker) taken.recordMarker();
        return marker;
      }
      const later = Promise.withResolvers<unknown>();
      const timer = setTimeout(later.resolve, LOOK_MS[shut]).unref();
      await Promise.race([room.changed(), stopped.promise, later.promise]);
      clearTimeout(timer);
      return MARKER;
    };

    endByToken(backend, handed);
    return backend;
  };

  return {
    handed: (token: string): HandedJob | undefined => handed.get(token),
    /** All that waits, if anything does, waits for its provider. */
    hasNoRoom: (): boolean => taken.shut() === 'all tiers',

    /** Takes no more jobs, and puts back those that have not been started. */
    stop(): Promise<void> {
      stopped.resolve(undefined);
      return taken.stop();
    },

    factory,
  };
}
