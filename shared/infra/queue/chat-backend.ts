import { setTimeout as pause } from 'node:timers/promises';

import { createRedisBackend, isNotConnectionError, raw2NextJobData } from 'bullmq';
import type { BackendFactory, RedisQueueBackend } from 'bullmq';

import type { JobStore } from '../redis/requests/job-store.ts';
import type { MadeClaim } from '../redis/requests/running-request.ts';
import { MARKER } from './bullmq-layout.ts';
import { createTakenJobs } from './taken-jobs.ts';
import type { QueueRoom } from './taken-jobs.ts';

/** What BullMQ does for a worker of chat requests, in fewer calls (docs/decisions/0005-fencing-and-leases.md). */
export interface ChatBackend {
  /** For BullMQ's Worker. */
  factory: BackendFactory<RedisQueueBackend>;
  /** The job that BullMQ got under this token. */
  handed(token: string): HandedJob | undefined;
  /** All that waits, if anything does, waits for its provider. */
  hasNoRoom(): boolean;
  /** Takes no more jobs, and puts back those that have not been started. */
  stop(): Promise<void>;
}

/** A job that was handed to BullMQ's worker. */
interface HandedJob {
  lock: string;
  claim: MadeClaim | undefined;
  /** The request has a place at its provider, or waits for one there. */
  placed(): void;
  /** The job ended with its request, so BullMQ need not end it. */
  isEnded: boolean;
}

export interface ChatBackendDeps {
  jobs: JobStore;
  room: QueueRoom;
  /** How many jobs the worker runs at once. */
  places: () => number;
  lockMs: number;
  onError: (error: unknown) => void;
}

/** While there is no room for some of what waits, the others' room is looked at again after this time, or sooner. */
const LOOK_MS = { 'some tiers': 100, 'all tiers': 1_000 } as const;

/**
 * BullMQ's Worker asks for one job at a time and gets those of one call in turn (taken-jobs.ts). It stays in charge of stalled
 * jobs, locks, pauses, canaries and drain. Jobs that are kept for Bull Board, and whatever this does not know, go BullMQ's
 * way.
 */
export function createChatBackend({ jobs, room, places, lockMs, onError }: ChatBackendDeps): ChatBackend {
  /** By the token of BullMQ's question, under which the worker knows the job. */
  const handed = new Map<string, HandedJob>();
  const taken = createTakenJobs({ jobs, room, lockMs, onError });
  const stopped = Promise.withResolvers<undefined>();

  const lockOf = (token: string) => handed.get(token)?.lock ?? token;

  /** Drops the claim as well: a table that a map has outgrown keeps its values alive until V8's next full collection. */
  function forget(token: string): void {
    const job = handed.get(token);
    if (job !== undefined) {
      job.claim = undefined;
      job.placed();
    }
    handed.delete(token);
  }

  /** A request that was taken is placed once. */
  function placeOnce(): () => void {
    let isPlaced = false;
    return () => {
      if (!isPlaced) room.placed(1);
      isPlaced = true;
    };
  }

  return {
    handed: (token) => handed.get(token),

    hasNoRoom: () => taken.shut() === 'all tiers',

    stop() {
      stopped.resolve(undefined);
      return taken.stop();
    },

    factory(name, options, more) {
      const backend = createRedisBackend(name, options, more);
      const moveToActive = backend.moveToActive.bind(backend);
      const moveToCompleted = backend.moveToCompleted.bind(backend);
      const moveToFailed = backend.moveToFailed.bind(backend);
      const extendLocks = backend.extendLocks.bind(backend);
      const waitForJob = backend.waitForJob.bind(backend);

      backend.moveToActive = async (token, workerName) => {
        const job = await taken.next(Math.max(1, places() - handed.size));
        if (job === 'none') return [];
        if (job !== 'other') {
          handed.set(token, { lock: job.lock, claim: job.claim, placed: placeOnce(), isEnded: false });
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
          if (marker) taken.noteMarker();
          return marker;
        }
        const looksAgain = new AbortController();
        const later = pause(LOOK_MS[shut], undefined, { signal: looksAgain.signal, ref: false });
        await Promise.race([room.changed(), stopped.promise, later.catch(() => undefined)]);
        looksAgain.abort();
        return MARKER;
      };

      // `false`: BullMQ fetches no next job, so that each token is one job. The result is undefined, as the worker would take
      // one without a job for an empty queue.
      backend.moveToCompleted = async (job, value, keep, token) => {
        const isEnded = handed.get(token)?.isEnded === true;
        const finishedOn = isEnded
          ? Date.now()
          : (await moveToCompleted(job, value, keep, lockOf(token), false)).finishedOn;
        forget(token);
        return { result: undefined, finishedOn };
      };

      backend.moveToFailed = async (job, reason, keep, token, _fetchNext, fields) => {
        const failing = moveToFailed(job, reason, keep, lockOf(token), false, fields);
        const { finishedOn } = await failing.catch((error: unknown) => {
          // Once Redis is back BullMQ asks again, under the same token.
          if (!(error instanceof Error) || isNotConnectionError(error)) forget(token);
          throw error;
        });
        forget(token);
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
      return backend;
    },
  };
}
