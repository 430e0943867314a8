import type { AttemptRef, RequestStore } from '../../../shared/infra/redis/requests/request-store.ts';
import type { AnswerSoFar, Lease, StopReason } from '../stage.ts';

/** docs/architecture/facts.md section 4: text is coalesced within this time or size once more than one piece waits. */
const COALESCE_MS = 15;
const COALESCE_CHARACTERS = 1_024;
/**
 * With more streams a worker coalesces for longer, and sends the text of all of them at the same beats: each entry has
 * its cost in four processes, and each call. Readers still see more than ten steps a second.
 */
const BEATS: readonly { moreThan: number; ms: number }[] = [
  { moreThan: 250, ms: 90 },
  { moreThan: 50, ms: 60 },
];

/** Sends released text to the request's stream, the first piece at once. */
export interface ChunkWriter {
  write(text: string): void;
  /** Waits for the append under way; what is not appended stays in `answer.unsent`. Throws where Redis refused. */
  settle(): Promise<void>;
}

/** Opens the writers of one worker. */
export function createChunkWriters(
  requests: Pick<RequestStore, 'append'>,
): (ref: AttemptRef, answer: AnswerSoFar, lease: Lease) => ChunkWriter {
  const open = new Set<ChunkWriter>();
  const beatMs = () => BEATS.find(({ moreThan }) => open.size > moreThan)?.ms;
  const atBeat = createBeat();
  return (ref, answer, lease) => {
    const writer = createChunkWriter(requests, { ref, answer, lease, beatMs, atBeat });
    open.add(writer);
    return {
      write: writer.write,
      async settle() {
        open.delete(writer);
        await writer.settle();
      },
    };
  };
}

/** Calls all who wait at the next multiple of `ms` on the clock, one timer for all of them; returns how to wait no more. */
function createBeat(): (ms: number, call: () => void) => () => void {
  const waiting = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;

  function beat(): void {
    timer = undefined;
    const calls = [...waiting];
    waiting.clear();
    for (const call of calls) call();
  }

  return (ms, call) => {
    waiting.add(call);
    timer ??= setTimeout(beat, ms - (performance.now() % ms));
    return () => {
      if (!waiting.delete(call) || waiting.size > 0) return;
      clearTimeout(timer);
      timer = undefined;
    };
  };
}

function after(ms: number, call: () => void): () => void {
  const timer = setTimeout(call, ms);
  return () => {
    clearTimeout(timer);
  };
}

interface Writing {
  ref: AttemptRef;
  answer: AnswerSoFar;
  lease: Lease;
  /** Undefined: few streams run, and each coalesces by itself. */
  beatMs: () => number | undefined;
  atBeat: (ms: number, call: () => void) => () => void;
}

function createChunkWriter(
  requests: Pick<RequestStore, 'append'>,
  { ref, answer, lease, beatMs, atBeat }: Writing,
): ChunkWriter {
  let appending: Promise<void> | undefined;
  /** Set while text waits. */
  let waitNoMore: (() => void) | undefined;
  let lastAppendAt = -Infinity;
  let closed = false;

  function end(reason: StopReason): void {
    closed = true;
    lease.stop(reason);
  }

  async function append(): Promise<void> {
    const deltas = answer.unsent.splice(0);
    const lastSeq = answer.sentSeq + deltas.length;
    lastAppendAt = performance.now();
    try {
      const outcome = await requests.append(ref, lastSeq, deltas, {
        promptTokens: answer.promptTokens,
        earlier: answer.sent,
      });
      answer.sentSeq = lastSeq;
      answer.sent.push(...deltas);
      if (outcome !== 'ok') end(outcome);
    } catch {
      // Whether it was written is unknown, so nothing may follow it: another attempt has to decide.
      end('superseded');
    }
  }

  function start(): void {
    waitNoMore?.();
    waitNoMore = undefined;
    if (appending !== undefined || closed || answer.unsent.length === 0) return;
    appending = append().finally(() => {
      appending = undefined;
      schedule();
    });
  }

  function waitingCharacters(): number {
    return answer.unsent.reduce((sum, delta) => sum + delta.length, 0);
  }

  function schedule(): void {
    if (appending !== undefined || closed || answer.unsent.length === 0) return;
    const ms = beatMs();
    const wait = lastAppendAt + (ms ?? COALESCE_MS) - performance.now();
    if (wait <= 0 || waitingCharacters() >= COALESCE_CHARACTERS) start();
    else waitNoMore ??= ms === undefined ? after(wait, start) : atBeat(ms, start);
  }

  return {
    write(text) {
      answer.unsent.push(text);
      schedule();
    },
    async settle() {
      closed = true;
      waitNoMore?.();
      await appending;
    },
  };
}
