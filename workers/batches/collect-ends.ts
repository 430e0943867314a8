import type { AnswerCache } from '../../shared/infra/redis/requests/stored-answers.ts';
import type { BatchLane } from '../../shared/infra/redis/requests/lane-store.ts';
import type { BatchWorkRepository, LineEnd } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import type { OpenBatch } from './open-batch.ts';
import type { ReadLines } from './read-lines.ts';

export interface CollectEndsDeps {
  work: Pick<BatchWorkRepository, 'end'>;
  lane: Pick<BatchLane, 'states'>;
  answers: Pick<AnswerCache, 'read' | 'shorten'>;
  lines: Pick<ReadLines, 'again'>;
  /** How long Redis keeps an answer that the results have. */
  retentionMs: number;
}

/** Answers may be large: so many are in memory at once. */
const GROUP = 50;

/** Brings the answers of ended lines from Redis into the batch's results. */
export function createCollectEnds({ work, lane, answers, lines, retentionMs }: CollectEndsDeps) {
  async function toEnd(shard: number, [index, requestId]: readonly [number, string]): Promise<LineEnd | undefined> {
    const ended = await answers.read(shard, requestId);
    if (ended === undefined) return undefined;
    const { fields, entries } = ended;
    return { index, status: fields['status'] === 'completed' ? 'completed' : 'failed', answer: { fields, entries } };
  }

  async function take(batch: OpenBatch, group: readonly (readonly [number, string])[]): Promise<void> {
    const { tenantId, shard, _id: batchId } = batch.row;
    const ends = (await Promise.all(group.map((line) => toEnd(shard, line)))).filter((end) => end !== undefined);
    await work.end(tenantId, batchId, ends);
    for (const { index, status } of ends) {
      batch.inFlight.delete(index);
      batch.counts[status] += 1;
    }
    await Promise.all(group.map(([, requestId]) => answers.shorten(shard, requestId, retentionMs)));
  }

  return async (batch: OpenBatch): Promise<void> => {
    const inFlight = [...batch.inFlight];
    if (inFlight.length === 0) return;
    const states = await lane.states(
      batch.row.shard,
      inFlight.map(([, requestId]) => requestId),
    );
    const ended = inFlight.filter((_line, at) => states[at] === 'done');
    for (let from = 0; from < ended.length; from += GROUP) await take(batch, ended.slice(from, from + GROUP));
    // Redis came back without it, or the lane gave it back: it is sent again, and the book takes its charge once.
    const lost = inFlight.filter((_line, at) => states[at] === undefined || states[at] === 'void');
    for (const [index] of lost) await lines.again(batch, index);
  };
}

export type CollectEnds = ReturnType<typeof createCollectEnds>;
