import { createRedisBackend, isNotConnectionError, raw2NextJobData } from 'bullmq';
import type { BackendFactory, RedisQueueBackend } from 'bullmq';

import type { JobStore } from '../redis/requests/job-store.ts';
import type { MadeClaim } from '../redis/requests/running-request.ts';
import { createTakenJobs } from './taken-jobs.ts';

/** What BullMQ does for a worker of chat requests, in fewer calls (docs/decisions/0062-one-call-takes-one-call-ends.md). */
export interface ChatBackend {
  /** For BullMQ's Worker. */
  factory: BackendFactory<RedisQueueBackend>;
  /** The job that BullMQ got under this token. */
  handed(token: string): HandedJob | undefined;
  /** Takes no more jobs, and puts back those that have not been started. */
  stop(): Promise<void>;
}

/** A job that was handed to BullMQ's worker. */
interface HandedJob {
  lock: string;
  claim: MadeClaim | undefined;
  /** The job ended with its request, so BullMQ need not end it. */
  isEnded: boolean;
}

export interface ChatBackendDeps {
  jobs: JobStore;
  /** How many jobs the worker runs at once. */
  places: () => number;
  lockMs: number;
  onError: (error: unknown) => void;
}

/** What BullMQ's marker says: a job waits. */
const MARKER = { member: '0', score: 0 };

/**
 * BullMQ's Worker asks for one job at a time and gets those of one call in turn (taken-jobs.ts). It stays in charge of stalled
 * jobs, locks, pauses, canaries and drain. Jobs that are kept for Bull Board, and whatever this does not know, go BullMQ's
 * way.
 */
export function createChatBackend({ jobs, places, lockMs, onError }: ChatBackendDeps): ChatBackend {
  /** By the token of BullMQ's question, under which the worker knows the job. */
  const handed = new Map<string, HandedJob>();
  const taken = createTakenJobs({ jobs, lockMs, onError });

  const lockOf = (token: string) => handed.get(token)?.lock ?? token;

  /** Drops the claim as well: a table that a map has outgrown keeps its values alive until V8's next full collection. */
  function forget(token: string): void {
    const job = handed.get(token);
    if (job !== undefined) job.claim = undefined;
    handed.delete(token);
  }

  return {
    handed: (token) => handed.get(token),

    stop: () => taken.stop(),

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
          handed.set(token, { lock: job.lock, claim: job.claim, isEnded: false });
          const found: unknown[] = raw2NextJobData([job.fields, job.id, 0, 0]);
          return found;
        }
        const theirs: unknown[] = await moveToActive(token, workerName);
        if (theirs[0] !== null) handed.set(token, { lock: token, claim: undefined, isEnded: false });
        return theirs;
      };

      // A worker that waits for the marker has heard that there are no more jobs.
      backend.waitForJob = (timeout) => (taken.mayHaveMore() ? Promise.resolve(MARKER) : waitForJob(timeout));

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
