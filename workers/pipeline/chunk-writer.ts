import type { Increment } from '../../shared/contracts/events.ts';
import type { ScheduleRead } from '../providers/http-call.ts';
import type { Claimed, StopReason } from './stage.ts';

/** Moments that several streams of a worker share, so that the worker serves all of them in one go. */
type FlushSchedule = ReturnType<typeof createFlushSchedule>;

/** A beat due in less than a quarter of the interval is skipped: a timer that fires early would hit it twice. */
const NEAR = 4;

/** `offsetMs`: how much earlier these beats come than beats without an offset; less than `everyMs`. */
function createFlushSchedule(everyMs: number, offsetMs = 0) {
  let waiting = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;

  function beat(): void {
    timer = undefined;
    const acts = waiting;
    waiting = new Set();
    for (const act of acts) act();
  }

  function untilNext(): number {
    const ms = everyMs - ((performance.now() + offsetMs) % everyMs);
    return ms < everyMs / NEAR ? ms + everyMs : ms;
  }

  return {
    /** Calls back at the next beat; returns a function that cancels it. */
    next(act: () => void): () => void {
      const acts = waiting;
      acts.add(act);
      timer ??= setTimeout(beat, untilNext());
      return () => {
        acts.delete(act);
        if (waiting.size > 0) return;
        clearTimeout(timer);
        timer = undefined;
      };
    },
  };
}

/** docs/decisions/0006-answer-streams.md: text is coalesced within this time or size once more than one piece waits. */
const COALESCE_MS = 15;
const COALESCE_CHARACTERS = 1_024;
/**
 * With more streams a worker reads and sends text on common beats: a read or an entry costs the same however little
 * text it has (docs/decisions/0006-answer-streams.md).
 */
const BUSY_STREAMS = 50;
const BEAT_MS = 80;
/**
 * So many streams share a beat before the next one is used: the successors of streams that end on one beat begin
 * together and wait for each other (docs/decisions/0006-answer-streams.md). The first two offsets are the farthest
 * apart.
 */
const STREAMS_OF_A_BEAT = 50;
const BEAT_OFFSETS_MS = [0, 40, 20, 60];
/** Text that was read on a beat goes out at once. */
const BUSY_COALESCE_MS = BEAT_MS / 2;

/** The first of the released increments is appended at once. */
export type ChunkWriter = ReturnType<typeof createChunkWriter>;

export function createChunkWriters(): (run: WrittenRun) => ChunkWriter {
  const open = new Set<ChunkWriter>();
  const flushSchedules = BEAT_OFFSETS_MS.map((offsetMs) => createFlushSchedule(BEAT_MS, offsetMs));
  let opened = 0;
  const isBusy = () => open.size > BUSY_STREAMS;

  function beatOf(stream: number): FlushSchedule | undefined {
    if (!isBusy()) return undefined;
    const used = Math.min(flushSchedules.length, Math.ceil(open.size / STREAMS_OF_A_BEAT));
    return flushSchedules[stream % used];
  }

  const paceOf = (stream: number): Pace => ({
    isDue: (lastAt) => lastAt + (isBusy() ? BUSY_COALESCE_MS : COALESCE_MS) <= performance.now(),
    scheduleRead: () => beatOf(stream)?.next,
    wait(act, lastAt) {
      const beat = beatOf(stream);
      if (beat !== undefined) return beat.next(act);
      const timer = setTimeout(act, Math.max(1, lastAt + COALESCE_MS - performance.now()));
      return () => {
        clearTimeout(timer);
      };
    },
  });

  return (run) => {
    opened += 1;
    const writer = createChunkWriter(run, paceOf(opened));
    open.add(writer);
    return {
      ...writer,
      async settle(endsLater) {
        open.delete(writer);
        await writer.settle(endsLater);
      },
    };
  };
}

/** `lastAt`: the time of the latest append; -Infinity: none. */
interface Pace {
  isDue(lastAt: number): boolean;
  scheduleRead: () => ScheduleRead | undefined;
  /** Calls back when text is due; returns a function that cancels it. */
  wait(act: () => void, lastAt: number): () => void;
}

export type WrittenRun = Pick<Claimed, 'delivery' | 'answer' | 'lease'>;

function charactersOf(deltas: readonly Increment[]): number {
  return deltas.reduce((sum, delta) => sum + (typeof delta === 'string' ? delta : delta.line).length, 0);
}

/**
 * Calls `act` at the end of this turn of the event loop, so that text and end go in one call if both come in it. The
 * calls of a turn leave together anyway (shared/redis/connection.ts).
 */
function createTurnEnd(act: () => void) {
  let isAwaited = false;
  return {
    isAwaited: () => isAwaited,
    begin(): void {
      if (isAwaited) return;
      isAwaited = true;
      // Text is handed over in a microtask, and a tick that it requests runs once no microtask is left.
      process.nextTick(() => {
        isAwaited = false;
        act();
      });
    },
  };
}

function createChunkWriter({ delivery, answer, lease }: WrittenRun, pace: Pace) {
  let appending: Promise<void> | undefined;
  let stopWaiting: (() => void) | undefined;
  let lastAppendAt = -Infinity;
  let closed = false;
  const soon = createTurnEnd(start);

  function end(reason: StopReason): void {
    closed = true;
    lease.stop(reason);
  }

  async function append(): Promise<void> {
    const deltas = answer.unsent.splice(0);
    lastAppendAt = performance.now();
    try {
      const outcome = await delivery.append(deltas, answer.promptTokens);
      if (outcome !== 'ok') end(outcome);
    } catch {
      // Whether Redis has the text is unknown, so nothing may be appended after it; another delivery has to decide.
      end('superseded');
    }
  }

  function start(): void {
    stopWaiting = undefined;
    if (appending !== undefined || closed || answer.unsent.length === 0) return;
    appending = append().finally(() => {
      appending = undefined;
      schedule();
    });
  }

  function schedule(): void {
    if (appending !== undefined || closed || answer.unsent.length === 0) return;
    if (pace.isDue(lastAppendAt) || charactersOf(answer.unsent) >= COALESCE_CHARACTERS) {
      stopWaiting?.();
      stopWaiting = undefined;
      soon.begin();
    } else stopWaiting ??= pace.wait(start, lastAppendAt);
  }

  return {
    write(increment: Increment): void {
      answer.unsent.push(increment);
      schedule();
    },
    /** Says when to read the provider's next text. Undefined: as soon as it arrives. */
    scheduleRead: (): ScheduleRead | undefined => (lastAppendAt === -Infinity ? undefined : pace.scheduleRead()),
    /**
     * Waits for the append in progress; other text stays in `answer.unsent` and goes with the end of the answer.
     * `endsLater`: the end waits for something else, so text that is due is appended first.
     */
    async settle(endsLater: boolean = false): Promise<void> {
      if (endsLater && soon.isAwaited()) start();
      closed = true;
      stopWaiting?.();
      await appending;
    },
  };
}
