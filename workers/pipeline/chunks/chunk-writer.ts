import type { AttemptRef, RequestStore } from '../../../shared/infra/redis/requests/request-store.ts';
import type { AnswerSoFar, Lease, StopReason } from '../stage.ts';

/** docs/architecture/facts.md section 4: text is coalesced within this time or size once more than one piece waits. */
const COALESCE_MS = 15;
const COALESCE_CHARACTERS = 1_024;
/** With more streams than this a worker coalesces for longer: a reader does not see it, and each entry has its cost. */
const BUSY_STREAMS = 50;
const BUSY_COALESCE_MS = 40;

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
  const coalesceMs = () => (open.size <= BUSY_STREAMS ? COALESCE_MS : BUSY_COALESCE_MS);
  return (ref, answer, lease) => {
    const writer = createChunkWriter(requests, { ref, answer, lease, coalesceMs });
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

interface Writing {
  ref: AttemptRef;
  answer: AnswerSoFar;
  lease: Lease;
  coalesceMs: () => number;
}

function createChunkWriter(
  requests: Pick<RequestStore, 'append'>,
  { ref, answer, lease, coalesceMs }: Writing,
): ChunkWriter {
  let appending: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let lastAppendAt = -Infinity;
  let closed = false;
  let isStarting = false;

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
    timer = undefined;
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
    const wait = lastAppendAt + coalesceMs() - performance.now();
    if (wait <= 0 || waitingCharacters() >= COALESCE_CHARACTERS) {
      clearTimeout(timer);
      timer = undefined;
      startSoon();
    } else timer ??= setTimeout(start, wait);
  }

  /**
   * In this turn of the event loop, once all that has come with the text is known: where that is the end of the answer,
   * the text goes with it, in one call. Calls of a turn leave together anyway (shared/infra/redis/cork-turns.ts).
   */
  function startSoon(): void {
    if (isStarting) return;
    isStarting = true;
    // A tick that is asked for in a microtask comes when no microtask is left.
    queueMicrotask(() => {
      process.nextTick(() => {
        isStarting = false;
        start();
      });
    });
  }

  return {
    write(text) {
      answer.unsent.push(text);
      schedule();
    },
    async settle() {
      closed = true;
      clearTimeout(timer);
      await appending;
    },
  };
}
