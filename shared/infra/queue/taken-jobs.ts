import type { Tier } from '../../contracts/chat-request.ts';
import type { JobStore, TakenJob } from '../redis/requests/job-store.ts';

/** Jobs taken in one call. More would hardly save calls, and other workers should get their part. */
const TAKE_MAX = 8;
/** After this time without a question, jobs go back: BullMQ is paused, closing, or has fewer places by now. */
const LEFT_MS = 500;

/** What the providers of the requests in a queue have room for. */
interface Room {
  /** 0: for nothing. */
  most: number;
  /** The tiers that are open and have room for less than was asked for. */
  limiting: readonly Tier[];
  /** The tiers whose providers are full. */
  closed: readonly Tier[];
}

export interface QueueRoom {
  look(most: number): Promise<Room>;
  /** Requests that were taken hold room until they are `placed`: have a place at a provider, wait for one there, or end. */
  took(count: number, room: Room): void;
  placed(count: number): void;
  /** Resolves when there may be more room. */
  changed(): Promise<void>;
}

export interface TakenJobsDeps {
  jobs: Pick<JobStore, 'take' | 'giveBack' | 'mark'>;
  room: Pick<QueueRoom, 'look' | 'took' | 'placed'>;
  lockMs: number;
  onError: (error: unknown) => void;
}

/** The jobs of one call of Redis, which are handed out in turn. */
export interface TakenJobs {
  /**
   * The next one; `most`: how many the worker may take, at least 1. `none`: start those you have. `other`: only BullMQ
   * itself can hand out what waits.
   */
  next(most: number): Promise<TakenJob | 'none' | 'other'>;
  /** The worker has heard that there are no more. True: there may be, so it need not wait for the marker. Asked once. */
  mayHaveMore(): boolean;
  /** How much of what waits there was no room for when the worker asked last. */
  shut(): 'nothing' | 'some tiers' | 'all tiers';
  /** The worker waited for the marker and got it; nobody else can until it is set again. */
  noteMarker(): void;
  /** Takes no more jobs, and puts back those that were not handed out. */
  stop(): Promise<void>;
}

/**
 * A worker starts no job before it hears that there are no more, or has as many as it may run. So the question after the
 * last job of a call is answered with "none", without a call: otherwise the first jobs of a burst would wait for all
 * further calls. A call that brought fewer jobs than asked for has found the queue empty, and the worker waits for the
 * marker. After a full call it hears at once that jobs wait, and asks again while its jobs start.
 */
export function createTakenJobs({ jobs, room, lockMs, onError }: TakenJobsDeps): TakenJobs {
  let left: TakenJob[] = [];
  /** All jobs of the last call are handed out: the next question is answered with none, so that the worker starts them. */
  let isHandedOut = false;
  /** The last call brought as many jobs as it asked for. */
  let wasFull = false;
  let isStopped = false;
  let closed: 'nothing' | 'some tiers' | 'all tiers' = 'nothing';
  let hasMarker = false;
  let timer: NodeJS.Timeout | undefined;

  function stopTimer(): void {
    clearTimeout(timer);
    timer = undefined;
  }

  async function giveBack(): Promise<void> {
    stopTimer();
    const unstarted = left;
    left = [];
    if (unstarted.length === 0) return;
    room.placed(unstarted.length);
    await jobs.giveBack(unstarted);
  }

  function watchLeft(): void {
    timer ??= setTimeout(() => {
      giveBack().catch(onError);
    }, LEFT_MS).unref();
  }

  return {
    async next(most) {
      const waiting = left.shift();
      if (waiting !== undefined) {
        if (left.length === 0) stopTimer();
        return waiting;
      }
      if (isHandedOut || isStopped) {
        isHandedOut = false;
        return 'none';
      }
      const found = await room.look(Math.min(TAKE_MAX, most));
      closed = found.most === 0 ? 'all tiers' : found.closed.length > 0 ? 'some tiers' : 'nothing';
      const gotMarker = hasMarker;
      hasMarker = false;
      if (found.most === 0) {
        if (gotMarker) await jobs.mark();
        return 'none';
      }
      const taken = await jobs.take(found.most, lockMs, found.closed);
      if (taken === 'other') return 'other';
      room.took(taken.length, found);
      left = taken;
      // `stop` may have been called meanwhile, which the type checker cannot see.
      if (isStopped as boolean) {
        await giveBack();
        return 'none';
      }
      isHandedOut = taken.length > 0;
      wasFull = taken.length === found.most;
      const first = left.shift();
      if (left.length > 0) watchLeft();
      return first ?? 'none';
    },

    mayHaveMore() {
      isHandedOut = false;
      const mayBe = left.length > 0 || wasFull;
      wasFull = false;
      return mayBe;
    },

    shut: () => closed,

    noteMarker() {
      hasMarker = true;
    },

    stop() {
      isStopped = true;
      return giveBack();
    },
  };
}
