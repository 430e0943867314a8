import type { RequestHandler, Response } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import type { BatchRow } from '../../shared/infra/mongo/batch-rows.ts';
import { idempotencyKeyOf } from '../admission/idempotency.ts';
import { contextOf, principalOf } from '../middleware/request-context.ts';
import { readBatch } from './read-batch.ts';
import { openUpload } from './upload.ts';
import type { UploadDeps } from './upload.ts';

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
export function createReceiveBatch(deps: UploadDeps): RequestHandler {
  return async (req, res, next) => {
    // Said before anything is read and stored.
    idempotencyKeyOf(req);
    const upload = openUpload(principalOf(res), deps);
    try {
      const { sha256, metadataJson } = await readBatch(req, upload.add);
      received.set(res, () => upload.start(metadataJson));
      req.body = { sha256 };
    } catch (fault) {
      const discarded = upload.discard();
      // Where a store is away, the caller need not wait for it a second time.
      if (fault instanceof ServiceError) await discarded;
      throw fault;
    }
    contextOf(res).undo = upload.discard;
    res.once('close', () => void upload.discard());
    if (res.closed) await upload.discard();
    else next();
  };
}
