import type { Connection } from 'mongoose';

import { batchModel } from '../batches/batch-repository.ts';
import { complianceJobModel } from '../compliance/compliance-job-repository.ts';
import { requestIntentModel } from '../requests/request-intents.ts';
import { tenantModel } from '../tenants/tenant-repository.ts';
import type { TenantMove } from '../tenants/tenant-repository.ts';

/** A tenant's unfinished work beside its requests. */
interface OpenTasks {
  /** Batches that have not ended, or whose end has not been published. */
  batches: number;
  /** Requests that may still have to be brought back. */
  intents: number;
  /** Exports and deletions. */
  jobs: number;
}

/**
 * Moves tenants between shards. The tenant's row decides: each change asks for the move's token, so one of two
 * processes wins, whatever they do in Redis (docs/decisions/0002-tenant-shards.md).
 */
export type TenantMoves = ReturnType<typeof createTenantMoves>;

async function countOpenTasks(
  batches: ReturnType<typeof batchModel>,
  intents: ReturnType<typeof requestIntentModel>,
  jobs: ReturnType<typeof complianceJobModel>,
  tenantId: string,
): Promise<OpenTasks> {
  const [open, kept, asked] = await Promise.all([
    batches.countDocuments({ tenantId, openShard: { $exists: true } }),
    // Failed ones stay for a day and are taken along.
    intents.countDocuments({ tenantId, failedAt: null }),
    jobs.countDocuments({ tenantId, status: { $in: ['queued', 'in_progress'] } }),
  ]);
  return { batches: open, intents: kept, jobs: asked };
}

export function createTenantMoves(connection: Connection) {
  const tenants = tenantModel(connection);
  const batches = batchModel(connection);
  const intents = requestIntentModel(connection);
  const jobs = complianceJobModel(connection);
  const own = (tenantId: string, { token }: TenantMove) => ({ _id: tenantId, 'move.token': token });

  return {
    openTasks: (tenantId: string): Promise<OpenTasks> => countOpenTasks(batches, intents, jobs, tenantId),

    /** False: the tenant is not on `from`, or is moved already. */
    async begin(tenantId: string, move: TenantMove): Promise<boolean> {
      const { matchedCount } = await tenants.updateOne(
        { _id: tenantId, shard: move.from, move: { $exists: false } },
        { $set: { move } },
      );
      return matchedCount === 1;
    },

    /** False: the move is another process's. */
    async renew(tenantId: string, move: TenantMove, now: number): Promise<boolean> {
      const { matchedCount } = await tenants.updateOne(own(tenantId, move), { $set: { 'move.renewedAt': now } });
      return matchedCount === 1;
    },

    /** Puts the tenant on `to`. False: the move is another process's. */
    async arrive(tenantId: string, move: TenantMove): Promise<boolean> {
      const { matchedCount } = await tenants.updateOne(own(tenantId, move), { $set: { shard: move.to } });
      return matchedCount === 1;
    },

    /** Moves other rows that name the shard. Safe to repeat. */
    async takeAlong(tenantId: string, { from, to }: TenantMove): Promise<void> {
      await batches.updateMany({ tenantId, openShard: from }, { $set: { openShard: to } });
      await batches.updateMany({ tenantId, shard: from }, { $set: { shard: to } });
      await intents.updateMany({ tenantId, shard: from }, { $set: { shard: to } });
    },

    /** Forgets the move. False: the tenant is not on `shard`, or the move is another process's. */
    async end(tenantId: string, move: TenantMove, shard: number): Promise<boolean> {
      const { matchedCount } = await tenants.updateOne({ ...own(tenantId, move), shard }, { $unset: { move: 1 } });
      return matchedCount === 1;
    },
  };
}
