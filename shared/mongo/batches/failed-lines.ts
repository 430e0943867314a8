import type { Connection, QueryFilter } from 'mongoose';

import type { KeyMode } from '../../contracts/space.ts';
import type { OutageCode } from '../../domain/request-times.ts';
import { newId } from '../../lifecycle/ids.ts';
import type { FailedFilter } from '../requests/failed-intents.ts';
import { batchLineModel } from './batch-lines.ts';
import { batchModel } from './batch-repository.ts';
import type { BatchLineRow } from './batch-lines.ts';

/** An outage failed it, without text and without a charge; its batch still runs. */
export interface FailedLine {
  kind: 'batch';
  requestId: string;
  tenantId: string;
  mode: KeyMode;
  batchId: string;
  entityId?: string | undefined;
  /** Milliseconds since the epoch. */
  acceptedAt: number;
  failedAt: number;
  code: OutageCode;
}

export type FailedLines = ReturnType<typeof createFailedLines>;

type LinePosition = Pick<FailedLine, 'failedAt' | 'requestId'>;

function toQuery({ requestIds, shard, tenantId, code, kind, from = 0, before }: FailedFilter) {
  return {
    failedAt: { $gte: from, ...(before === undefined ? {} : { $lt: before }) },
    state: 'failed',
    ...(requestIds === undefined ? {} : { requestId: { $in: [...requestIds] } }),
    ...(tenantId === undefined ? {} : { tenantId }),
    ...(code === undefined ? {} : { failedCode: code }),
    // Lines have one kind, and do not say their shard.
    ...(shard === undefined && (kind === undefined || kind === 'batch') ? {} : { _id: { $in: [] } }),
  } satisfies QueryFilter<BatchLineRow>;
}

const isAfter = ({ failedAt, requestId }: LinePosition) => ({
  $or: [{ failedAt: { $gt: failedAt } }, { failedAt, requestId: { $gt: requestId } }],
});

function toFailed({
  requestId,
  tenantId,
  mode = 'live',
  batchId,
  entityId,
  fields,
  failedAt = 0,
  failedCode,
}: BatchLineRow) {
  const acceptedAt = Number(fields?.['acceptedAt'] ?? failedAt);
  const code = failedCode ?? 'model_unavailable';
  return { kind: 'batch', requestId, tenantId, mode, batchId, entityId, acceptedAt, failedAt, code } as const;
}

async function reopenLine(
  lines: ReturnType<typeof batchLineModel>,
  batches: ReturnType<typeof batchModel>,
  line: FailedLine,
): Promise<boolean> {
  const { tenantId, requestId, batchId, failedAt } = line;
  const failed = { tenantId, batchId, requestId, failedAt, state: 'failed', requestJson: { $exists: true } } as const;
  // The last try's result stays with the line; no result shows it while the line waits.
  const again = newId('req');
  const waiting = { state: 'waiting', requestId: again } as const;
  const { modifiedCount } = await lines.updateOne(failed, { $set: waiting, $unset: { failedAt: 1 } });
  if (modifiedCount === 0) return false;
  // The batch's end either sees that the line waits, or is refused.
  const running = { _id: batchId, tenantId, status: 'in_progress' } as const;
  if ((await batches.updateOne(running, { $inc: { reopened: 1 } })).matchedCount === 1) return true;
  // The batch has ended meanwhile, with this line as it was.
  const asItWas = { $set: { state: 'failed', requestId }, $unset: { requestJson: 1, failedCode: 1 } } as const;
  await lines.updateOne({ tenantId, batchId, ...waiting }, asItWas);
  return false;
}

/** These may be tried once more (docs/spec.md#replay). */
export function createFailedLines(connection: Connection) {
  const batches = batchModel(connection);
  const lines = batchLineModel(connection);

  return {
    /** Its key's limits count the try; undefined: the batch has ended. */
    batchOf: async ({ tenantId, batchId }: FailedLine) =>
      (await batches.findOne({ _id: batchId, tenantId, status: 'in_progress' }, { keyId: 1, createdAt: 1 }).lean()) ??
      undefined,

    /** In the order of failure, after `after`. */
    async list(
      filter: FailedFilter,
      { after, limit }: { after: LinePosition | undefined; limit: number },
    ): Promise<FailedLine[]> {
      const query = after === undefined ? toQuery(filter) : { $and: [toQuery(filter), isAfter(after)] };
      const rows = await lines
        .find(query, { requestJson: 0, entries: 0 })
        .sort({ failedAt: 1, requestId: 1 })
        .limit(limit)
        .lean();
      return rows.map(toFailed);
    },

    count: (filter: FailedFilter): Promise<number> => lines.countDocuments(toQuery(filter)),

    /** False: another call has reopened the line, or its batch has ended. */
    reopen: (line: FailedLine): Promise<boolean> => reopenLine(lines, batches, line),
  };
}
