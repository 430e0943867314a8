import { encodeEntry } from '../../shared/contracts/events.ts';
import type { Terminal } from '../../shared/contracts/events.ts';
import { createBatchWorkRepository } from '../../shared/mongo/batches/batch-work-repository.ts';
import type { LineEnd } from '../../shared/mongo/batches/batch-work-repository.ts';
import type { TestService } from './service.ts';

export const STOP: Terminal = { finishReason: 'stop', usage: { promptTokens: 3, completionTokens: 2 } };
const FIELDS = {
  tenant: '',
  state: 'done',
  status: 'completed',
  tier: 'oloid',
  metadata: '',
  acceptedAt: '1700000000123',
};

/** How a line ends, whatever its request id is. */
export type Ended = LineEnd extends infer End ? (End extends LineEnd ? Omit<End, 'requestId'> : never) : never;

/** A line that has run, with the increments of its answer in entries as a stream has them. */
export function ran(
  index: number,
  deltas: string[],
  terminal: Terminal = STOP,
  fields: Record<string, string> = {},
): Ended {
  const first = { lastSeq: deltas.length, payload: encodeEntry(deltas) };
  const last = { lastSeq: deltas.length + 2, payload: encodeEntry([], terminal) };
  const entries = deltas.length === 0 ? [last] : [first, last];
  return { index, status: 'completed', answer: { fields: { ...FIELDS, ...fields }, entries } };
}

/** Ends lines of a batch that nobody runs. */
export async function endLines(
  { mongo }: TestService,
  tenantId: string,
  batchId: string,
  ends: readonly Ended[],
): Promise<void> {
  const work = createBatchWorkRepository(mongo);
  const lines = await work.waiting(tenantId, batchId, -1, 10_000);
  const requestIds = new Map(lines.map(({ index, requestId }) => [index, requestId]));
  const named = ends.map((one) => ({ ...one, requestId: requestIds.get(one.index) ?? '' }));
  await work.end(tenantId, batchId, named);
}
