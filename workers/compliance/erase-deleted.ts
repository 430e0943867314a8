import type { ErasureRepository } from '../../shared/infra/mongo/compliance/erasure-repository.ts';
import type { RequestEraser } from '../../shared/infra/redis/requests/request-eraser.ts';
import type { DeliveryRef } from '../../shared/infra/redis/requests/running-request.ts';

export interface EraseDeletedDeps {
  erasures: Pick<ErasureRepository, 'latest'>;
  eraser: Pick<RequestEraser, 'erase'>;
}

/**
 * Erases what is left of an ended request whose entity or whole tenant was deleted after the request was accepted: a
 * finished deletion does not come back for it. The charge stays. Safe to repeat.
 */
export function createEraseDeleted({ erasures, eraser }: EraseDeletedDeps) {
  return async ({ shard, requestId, tenantId, facts }: DeliveryRef): Promise<void> => {
    if (facts === undefined) return;
    const { mode, seq, entityHash, idempotency } = facts;
    const space = { tenantId, mode };
    const upTo = await erasures.latest(space, entityHash);
    if (seq <= upTo) await eraser.erase(shard, space, { requestId, name: idempotency?.name }, upTo);
  };
}
