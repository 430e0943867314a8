import { createRedisBackend, isNotConnectionError, raw2NextJobData } from 'bullmq';
import type { BackendFactory, RedisQueueBackend } from 'bullmq';

import type { JobStore, TakenJob } from '../redis/requests/job-store.ts';
import type { MadeClaim } from '../redis/requests/running-request.ts';

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

/** Jobs taken in one call. More would hardly save calls, and other workers should get their part. */
const TAKE_MAX = 8;
/** What BullMQ's marker says: a job waits. */
const MARKER = { member: '0', score: 0 };
/** After this time without a question, jobs go back: BullMQ is paused, closing, or has fewer places by now. */
const LEFT_MS = 500;

/**
 * BullMQ's Worker asks for one job at a time and gets those of one call in turn. It starts none before it hears that there
 * are no more, or has as many as it may run. So the question after the last job of a call is answered with "none", without
 * a call: otherwise the first jobs of a burst would wait for all further calls. A call that brought fewer jobs than asked
 * for has found the queue empty, and the worker waits for the marker. After a full call it hears at once that jobs wait,
 * and asks again while its jobs start.
 *
 * BullMQ's Worker stays in charge of stalled jobs, locks, pauses, canaries and drain. Jobs that are kept for Bull Board, and
 * whatever this does not know, go BullMQ's way.
 */
export function createChatBackend({ jobs, places, lockMs, onError }: ChatBackendDeps): ChatBackend {
  /** By the token of BullMQ's question, under which the worker knows the job. */
  const handed = new Map<string, HandedJob>();
  let left: TakenJob[] = [];
  /** All jobs of the last call are handed out: the next question is answered with none, so that the worker starts them. */
  let isHandedOut = false;
  /** The last call brought as many jobs as it asked for. */
  let maybeMore = false;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;

  async function giveBack(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const unstarted = left;
    left = [];
    if (unstarted.length > 0) await jobs.giveBack(unstarted);
  }

  function watchLeft(): void {
    timer ??= setTimeout(() => {
      giveBack().catch(onError);
    }, LEFT_MS).unref();
  }

  function handOut({ id, fields, lock, claim }: TakenJob, token: string): unknown[] {
    handed.set(token, { lock, claim, isEnded: false });
    if (left.length === 0) {
      clearTimeout(timer);
      timer = undefined;
    }
    return raw2NextJobData([fields, id, 0, 0]);
  }

  /** Undefined: only BullMQ itself can hand out what waits. */
  async function next(token: string): Promise<unknown[] | undefined> {
    const waiting = left.shift();
    if (waiting !== undefined) return handOut(waiting, token);
    if (isHandedOut || isStopped) {
      isHandedOut = false;
      return [];
    }
    const most = Math.min(TAKE_MAX, Math.max(1, places() - handed.size));
    const taken = await jobs.take(most, lockMs);
    if (taken === 'other') return undefined;
    left = taken;
    // `stop` may have been called meanwhile, which the type checker cannot see.
    if (isStopped as boolean) {
      await giveBack();
      return [];
    }
    isHandedOut = taken.length > 0;
    maybeMore = taken.length === most;
    const first = left.shift();
    if (first === undefined) return [];
    if (left.length > 0) watchLeft();
    return handOut(first, token);
  }

  const lockOf = (token: string) => handed.get(token)?.lock ?? token;

  /** Drops the claim as well: a table that a map has outgrown keeps its values alive until V8's next full collection. */
  function forget(token: string): void {
    const job = handed.get(token);
    if (job !== undefined) job.claim = undefined;
    handed.delete(token);
  }

  return {
    handed: (token) => handed.get(token),

    stop() {
      isStopped = true;
      return giveBack();
    },

    factory(name, options, more) {
      const backend = createRedisBackend(name, options, more);
      const moveToActive = backend.moveToActive.bind(backend);
      const moveToCompleted = backend.moveToCompleted.bind(backend);
      const moveToFailed = backend.moveToFailed.bind(backend);
      const extendLocks = backend.extendLocks.bind(backend);
      const waitForJob = backend.waitForJob.bind(backend);

      backend.moveToActive = async (token, workerName) => {
        const found = await next(token);
        if (found !== undefined) return found;
        const theirs: unknown[] = await moveToActive(token, workerName);
        if (theirs[0] !== null) handed.set(token, { lock: token, claim: undefined, isEnded: false });
        return theirs;
      };

      // A worker that waits for the marker has heard that there are no more jobs.
      backend.waitForJob = (timeout) => {
        isHandedOut = false;
        const isKnown = left.length > 0 || maybeMore;
        maybeMore = false;
        return isKnown ? Promise.resolve(MARKER) : waitForJob(timeout);
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
