import type { RequestHandler, Response } from 'express';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import type { Principal } from '../../../shared/domain/keys/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { BatchRepository, BatchRow } from '../../../shared/infra/mongo/batches/batch-repository.ts';
import { idempotencyKeyOf } from '../../admission/idempotency.ts';
import { keepsNothing } from '../../admission/retention.ts';
import type { BodyBudget } from '../../http/body-budget.ts';
import { contextOf, principalOf } from '../../http/request-context.ts';
import { readBatch } from './read-batch.ts';
import { openUpload } from './upload.ts';
import type { UploadDeps } from './upload.ts';

export interface ReceiveBatchDeps extends UploadDeps {
  batches: UploadDeps['batches'] & Pick<BatchRepository, 'countOpen'>;
  budget: BodyBudget;
}

/** Two calls at once may both find the last place: the bound is on what is stored, not to the piece. */
async function assertRoom({ batches }: ReceiveBatchDeps, principal: Principal): Promise<void> {
  if ((await batches.countOpen(principal, principal.shard)) < BATCH_LIMITS.openMax) return;
  throw new ServiceError(
    'conflict',
    `There are ${BATCH_LIMITS.openMax} batches that have not ended; wait for one to end, or cancel one.`,
  );
}

/** Results are answers that wait to be read. */
function assertKeepsResults(principal: Principal): void {
  if (!keepsNothing(principal)) return;
  throw new ServiceError(
    'conflict',
    'This tenant keeps no answers (retention_seconds is 0), so a batch would have no results; send its requests one by one.',
  );
}

const received = new WeakMap<Response, () => Promise<BatchRow>>();

/** Lets the batch run that `receiveBatch` has stored. */
export function startReceived(res: Response): Promise<BatchRow> {
  const start = received.get(res);
  if (start === undefined) throw new Error('The body of a batch must be read before it starts');
  return start();
}

/**
 * Reads and stores the body of `POST /batches`, and leaves its hash as `req.body`, by which an `Idempotency-Key` knows
 * it. What is not started by `startReceived` is taken away again, at the latest when the connection is over.
 */
export function createReceiveBatch(deps: ReceiveBatchDeps): RequestHandler {
  return async (req, res, next) => {
    // Said before anything is read and stored.
    idempotencyKeyOf(req);
    assertKeepsResults(principalOf(res));
    await assertRoom(deps, principalOf(res));
    const upload = openUpload(principalOf(res), deps);
    const share = deps.budget.open(principalOf(res).tenantId);
    try {
      const { sha256, metadataJson } = await readBatch(req, upload.add, (bytes) => {
        share.hold(bytes + upload.heldBytes());
      });
      received.set(res, () => upload.start(metadataJson, contextOf(res).run?.name));
      req.body = { sha256 };
    } catch (fault) {
      const discarded = upload.discard();
      // Where a store is away, the caller need not wait for it a second time.
      if (fault instanceof ServiceError) await discarded;
      throw fault;
    } finally {
      share.close();
    }
    contextOf(res).undo = upload.discard;
    res.once('close', () => void upload.discard());
    if (res.closed) await upload.discard();
    else next();
  };
}
