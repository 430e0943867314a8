import type { RequestHandler, Response } from 'express';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import { putNewest } from '../../../shared/domain/bounded-map.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { BatchRow } from '../../../shared/mongo/batches/batch-repository.ts';
import { idempotencyKeyOf, keepsNothing } from '../../http/request-terms.ts';
import { createBodyBudget } from '../../http/read-body.ts';
import type { BodyDeps } from '../../http/json-body.ts';
import { contextOf, principalOf } from '../../http/request-context.ts';
import { readBatch } from './read-batch.ts';
import { openUpload } from './upload.ts';
import type { UploadDeps } from './upload.ts';

export interface ReceiveBatchDeps extends UploadDeps {
  bodies: BodyDeps;
}

/** A tenant may have hundreds of thousands of batches to add up, so sums are reused for this long. */
const STORED_FRESH_MS = 60_000;
const TENANTS_MAX = 10_000;

interface Stored {
  lines: number;
  bytes: number;
  readAt: number;
}

/** Two simultaneous calls may both get the last place: the limits on stored batches are approximate. */
function createRoom({ batches, clock }: ReceiveBatchDeps) {
  const known = new Map<string, Stored>();

  async function storedOf(tenantId: string): Promise<Stored> {
    const now = clock.now();
    const last = known.get(tenantId);
    if (last !== undefined && now - last.readAt < STORED_FRESH_MS) return last;
    const stored = { ...(await batches.stored(tenantId)), readAt: now };
    putNewest(known, tenantId, stored, TENANTS_MAX);
    return stored;
  }

  return {
    async assertAny(principal: Principal): Promise<void> {
      const { tenantId, shard } = principal;
      const [open, stored] = await Promise.all([batches.countOpen(principal, shard), storedOf(tenantId)]);
      if (open >= BATCH_LIMITS.openMax) {
        throw new ServiceError(
          'conflict',
          `There are ${BATCH_LIMITS.openMax} batches that have not ended; wait for one to end, or cancel one.`,
        );
      }
      if (stored.lines < BATCH_LIMITS.storedLinesMax && stored.bytes < BATCH_LIMITS.storedBytesMax) return;
      throw new ServiceError(
        'conflict',
        `The account's batches of the last ${BATCH_LIMITS.keptMs / 86_400_000} days hold ${BATCH_LIMITS.storedLinesMax} requests or ${BATCH_LIMITS.storedBytesMax / 1024 ** 3} GiB, which is the limit; wait until old ones are removed.`,
      );
    },
    /** Counts a started batch until the sums are read again. */
    add({ tenantId, total, bytes = 0 }: BatchRow): void {
      const stored = known.get(tenantId);
      if (stored === undefined) return;
      stored.lines += total;
      stored.bytes += bytes;
    },
  };
}

/** Results are stored answers that wait to be read. */
function assertKeepsResults(principal: Principal): void {
  if (!keepsNothing(principal)) return;
  throw new ServiceError(
    'conflict',
    'This tenant keeps no answers (retention_seconds is 0), so a batch would have no results; send its requests one by one.',
  );
}

const received = new WeakMap<Response, () => Promise<BatchRow>>();

export function startReceived(res: Response): Promise<BatchRow> {
  const start = received.get(res);
  if (start === undefined) throw new Error('The body of a batch must be read before it starts');
  return start();
}

/**
 * Reads and stores the body of `POST /batches`, and leaves its hash as `req.body` for the `Idempotency-Key`. A batch
 * that `startReceived` does not start is deleted again, at the latest when the connection closes.
 */
export function createReceiveBatch(deps: ReceiveBatchDeps): RequestHandler {
  const room = createRoom(deps);
  const places = createBodyBudget(BATCH_LIMITS.atOnce, BATCH_LIMITS.atOnceOfAll, 1);
  const { budget, large } = deps.bodies;

  return async (req, res, next) => {
    const principal = principalOf(res);
    const { tenantId } = principal;
    // Throws on an invalid key before anything is read and stored.
    idempotencyKeyOf(req);
    assertKeepsResults(principal);
    const shares = [places.open(tenantId), budget.open(tenantId)] as const;
    const [place, memory] = shares;
    const upload = openUpload(principal, deps);
    const end = () => {
      for (const share of shares) share.close();
      return upload.discard();
    };
    try {
      place.hold(1);
      await room.assertAny(principal);
      const { sha256, metadataJson } = await readBatch(req, {
        keep: upload.add,
        hold: (bytes) => {
          memory.hold(bytes + upload.heldBytes());
        },
        inTurn: (work) => large.inTurn(tenantId, work),
      });
      received.set(res, async () => {
        const row = await upload.start(metadataJson, contextOf(res).run?.name);
        room.add(row);
        return row;
      });
      req.body = { sha256 };
    } catch (fault) {
      const discarded = end();
      // If a store is unavailable, the caller need not wait for it a second time.
      if (fault instanceof ServiceError) await discarded;
      throw fault;
    }
    contextOf(res).discard = upload.discard;
    res.once('close', () => void end());
    if (res.closed) await end();
    else next();
  };
}
