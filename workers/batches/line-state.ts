import { BATCH_LIMITS } from '../../shared/contracts/batches.ts';
import { LOST } from '../../shared/contracts/events.ts';
import type { RequestTrace } from '../../shared/contracts/events.ts';
import type { LineRetry } from '../../shared/mongo/batches/batch-lines.ts';
import type { BatchRow } from '../../shared/mongo/batches/batch-repository.ts';
import type { ReplayLog } from '../../shared/redis/redis-return.ts';
import type { AdmissionStore } from '../../shared/requests/admission-store.ts';

const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 60_000;

/** The start of the latest successful provider call; undefined: none succeeded. */
export function answeredAt(trace: RequestTrace | undefined): number | undefined {
  const answered = (trace?.attempts ?? []).filter(({ outcome }) => outcome === 'ok');
  return answered.length === 0 ? undefined : Math.max(...answered.map(({ startedAt }) => startedAt));
}

/** The random spread of a pause, as a fraction either way. */
const SPREAD = 0.25;

/** A due time farther ahead than any pause was set before the clock was set back. */
export function isDue({ dueAt }: LineRetry, now: number): boolean {
  return dueAt <= now || dueAt - now > BACKOFF_MAX_MS * (1 + SPREAD);
}

/**
 * Returns when the next try is due; undefined: the line is given up. `isOwnFault`: the provider is answering other
 * lines, or its answer to this line was unusable. `random` is from 0 to 1.
 */
export function nextRetry(
  last: LineRetry | undefined,
  { isOwnFault, now, random }: { isOwnFault: boolean; now: number; random: number },
): LineRetry | undefined {
  const tries = (last?.tries ?? 0) + 1;
  const faults = (last?.faults ?? 0) + (isOwnFault ? 1 : 0);
  if (faults >= BATCH_LIMITS.triesMax) return undefined;
  const backoffMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** (tries - 1));
  return { tries, faults, failedAt: now, dueAt: now + Math.round(backoffMs * (1 - SPREAD + 2 * SPREAD * random)) };
}

interface FailedTriesDeps {
  admissions: AdmissionStore;
  replayLog: ReplayLog;
}

type TriedBatch = Pick<BatchRow, '_id' | 'shard' | 'tenantId' | 'keyId'>;

/**
 * Keeps tries of lines ended that have failed without text. Redis may come back without the end of such a try, and its
 * worker, which would say it again, may have died: it would run a second time and be charged beside the line's next try
 * (docs/decisions/0016-batches.md).
 */
export type FailedTries = ReturnType<typeof createFailedTries>;

export function createFailedTries({ admissions, replayLog }: FailedTriesDeps) {
  async function end({ shard, tenantId, keyId }: TriedBatch, requestId: string): Promise<void> {
    // A try of which Redis knows nothing cannot run, so it needs no tombstone.
    await admissions.voidRefused(requestId, { shard, tenantId, keyId }, LOST, true);
  }

  return {
    /** Ends the try if Redis does not know that it has ended. Nobody pays for it. Safe to repeat. */
    end,
    /** Has this process say again that the try has ended, whenever Redis comes back within the next seconds. */
    note(batch: TriedBatch, requestId: string): void {
      const { _id: batchId, shard, tenantId } = batch;
      replayLog.note(() => end(batch, requestId), { shard, requestId, tenantId, batchId });
    },
  };
}

export type LineTokens = ReturnType<typeof createLineTokens>;

/** So many of the latest lines count: they say most about the next ones, as long lines may come together. */
const MEMORY = 16;

/**
 * The key's mean answer says little about a batch, and lines that run at once would all exceed it together and leave
 * nothing for the key's other requests. So the first lines count the most they can take, later ones the batch's mean
 * plus a standard deviation; with few lines known, the mean is uncertain by about its size over the root of their
 * number.
 */
export function createLineTokens() {
  let known = 0;
  let mean = 0;
  let variance = 0;
  return {
    note(tokens: number): void {
      known = Math.min(MEMORY, known + 1);
      const [share, off] = [1 / known, tokens - mean];
      mean += share * off;
      variance = (1 - share) * (variance + share * off * off);
    },
    /**
     * Returns the tokens that the next line counts as until it has ended; without history at most `most`. The uncertain
     * part counts only as far as there is `room`: a key in use would never have enough for more. `hasHistory`: history
     * comes on top of `most`, and only ended lines tell how long it is.
     */
    next(most: number, room: number, hasHistory: boolean = false): number {
      const likely = known === 0 ? most : mean + Math.sqrt(variance + (mean * mean) / known);
      return Math.min(hasHistory ? Infinity : most, Math.ceil(Math.max(mean, Math.min(likely, room))));
    },
  };
}
