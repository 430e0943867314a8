import { createRedisBackend, isNotConnectionError, raw2NextJobData } from 'bullmq';
import type { BackendFactory, RedisQueueBackend } from 'bullmq';

import type { JobStore, TakenJob } from '../redis/requests/job-store.ts';
import type { MadeClaim } from '../redis/requests/running-request.ts';

/** What BullMQ does for a worker of chat requests, in fewer calls (docs/decisions/0062-one-call-takes-one-call-ends.md). */
export interface ChatBackend {
  /** For BullMQ's Worker. */
  factory: BackendFactory<RedisQueueBackend>;
  /** The job that BullMQ was given under this token. */
  handed(token: string): HandedJob | undefined;
  /** Takes nothing more, and puts back what has not been started. */
  stop(): Promise<void>;
}

/** A job that BullMQ's worker has. */
interface HandedJob {
  lock: string;
  claim: MadeClaim | undefined;
  /** The job ended with its request: BullMQ need not end it. */
  isEnded: boolean;
}

export interface ChatBackendDeps {
  jobs: JobStore;
  /** How many jobs the worker runs at once. */
  places: () => number;
  lockMs: number;
  onError: (error: unknown) => void;
}

/** Of the jobs that wait at once, so that other workers get their part; more of them would hardly save calls. */
const TAKE_MAX = 8;
/** BullMQ's sign that a job waits. */
const MARKER = { member: '0', score: 0 };
/** BullMQ asks for the next job at once unless it is paused, closed, or has fewer places by now. */
const LEFT_MS = 500;

/**
 * The worker asks for one job after the other and is handed those of one call in turn. It starts none of them before it
 * is told that there are no more, or has as many as it may run, so the question after the last one is answered with none
 * and without a call: otherwise the first jobs of a burst would wait for all further calls of it. A call that brought
 * fewer than were asked for has found the queue empty, and the worker waits for the marker; after another it is told at
 * once that jobs wait, and asks again while those that it has begin.
 *
 * BullMQ's Worker stays in charge: stalled jobs, renewed locks, pauses, canaries and drain are its own. What is kept for
 * people to see, and whatever this does not know, goes its way.
 */
export function createChatBackend({ jobs, places, lockMs, onError }: ChatBackendDeps): ChatBackend {
  /** By the token of BullMQ's question, which is the job's name for its worker. */
  const handed = new Map<string, HandedJob>();
  let left: TakenJob[] = [];
  /** What was taken has been handed out: the next question is answered without a call, so that the worker starts it. */
  let isHandedOut = false;
  /** The last call brought as many as were asked for. */
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

  /** Undefined: only BullMQ itself can hand out what is there. */
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
    // It may have been told so meanwhile, which the type checker cannot see.
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

  /** Empties its place: what a map has outgrown lives on until V8's next full collection, with all that it holds. */
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

      // Whoever waits for the marker knows of nothing that was found before.
      backend.waitForJob = (timeout) => {
        isHandedOut = false;
        const isKnown = left.length > 0 || maybeMore;
        maybeMore = false;
        return isKnown ? Promise.resolve(MARKER) : waitForJob(timeout);
      };

      // The worker asks for the next job by itself, so that each token is one job. It must not hear of a result either: it
      // would take one without a job for an empty queue.
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
