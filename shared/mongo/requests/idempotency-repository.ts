import type { Connection } from 'mongoose';

import type { Space } from '../../contracts/space.ts';
import { collection, spaceFields } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import type { RowOfSpace } from '../collection.ts';

/** The request that runs or ran under an `Idempotency-Key` outside the chat routes, and its answer. */
export interface IdempotencyRow extends RowOfSpace {
  /** Hash of tenant, mode, route family and key. */
  _id: string;
  /** The request that runs or ran under the key. */
  owner: string;
  /** The first request under the key, which may have had its effect: what a later run creates has the same ids. */
  firstOwner?: string;
  /** Hash of path and body. */
  fingerprint: string;
  /** When `owner` claimed the key or last renewed its claim; milliseconds since the epoch. */
  claimedAt: number;
  /** Absent while the request runs. */
  status?: number;
  /** The answer without anything that is shown once. */
  bodyJson?: string;
  location?: string;
  /** The entity that the answer is about, so that its deletion finds it. */
  entityId?: string;
  /** MongoDB deletes the row after this time. */
  expiresAt: Date;
}

export const idempotencyModel = collection<IdempotencyRow>('idempotency', [
  [{ tenantId: 1, entityId: 1 }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** How long a key stands for its first request (docs/spec.md#idempotency). */
const KEPT_MS = 24 * 3_600_000;

/** A claim that was not renewed for this time has ended: its process has died, and the next request under its key may run. */
const CLAIM_MS = 60_000;

/** The stored answer of a request, as it is sent again. */
export interface IdempotentAnswer {
  status: number;
  bodyJson: string;
  location?: string | undefined;
  /** The entity that it is about, if it is about one. */
  entityId?: string | undefined;
}

export interface IdempotencyClaim {
  /** Hash of tenant, mode, route family and key. */
  name: string;
  fingerprint: string;
  /** The id of the request that wants to run. */
  owner: string;
}

export type ClaimVerdict =
  | { kind: 'mine'; firstOwner: string }
  | { kind: 'mismatch' }
  | { kind: 'running' }
  | { kind: 'answered'; answer: IdempotentAnswer };

export type IdempotencyRepository = ReturnType<typeof createIdempotencyRepository>;

function isOver(row: IdempotencyRow, now: number): boolean {
  return row.expiresAt.getTime() <= now || (row.status === undefined && row.claimedAt + CLAIM_MS <= now);
}

function verdictOf(row: IdempotencyRow, { fingerprint }: IdempotencyClaim): ClaimVerdict {
  if (row.fingerprint !== fingerprint) return { kind: 'mismatch' };
  if (row.status === undefined) return { kind: 'running' };
  return { kind: 'answered', answer: { status: row.status, bodyJson: row.bodyJson ?? '', location: row.location } };
}

async function insertRow(idempotency: ReturnType<typeof idempotencyModel>, row: IdempotencyRow): Promise<boolean> {
  try {
    await idempotency.create(row);
    return true;
  } catch (error) {
    if (isDuplicateKey(error)) return false;
    throw error;
  }
}

/** Takes a key over whose claim or answer is past its time. False: another request was faster. */
async function replaceRow(
  idempotency: ReturnType<typeof idempotencyModel>,
  old: IdempotencyRow,
  row: IdempotencyRow,
): Promise<boolean> {
  const { _id, tenantId, owner, firstOwner, fingerprint, claimedAt, expiresAt } = row;
  const { modifiedCount } = await idempotency.updateOne(
    { _id, tenantId, owner: old.owner, status: old.status ?? { $exists: false } },
    {
      $set: { owner, firstOwner, fingerprint, claimedAt, expiresAt },
      $unset: { status: 1, bodyJson: 1, location: 1, entityId: 1 },
    },
  );
  return modifiedCount === 1;
}

async function storeAnswer(
  idempotency: ReturnType<typeof idempotencyModel>,
  tenantId: string,
  { name, owner }: IdempotencyClaim,
  { status, bodyJson, location, entityId }: IdempotentAnswer,
): Promise<void> {
  const answer = {
    status,
    bodyJson,
    ...(location === undefined ? {} : { location }),
    ...(entityId === undefined ? {} : { entityId }),
  };
  await idempotency.updateOne({ _id: name, tenantId, owner }, { $set: answer });
}

export function createIdempotencyRepository(connection: Connection) {
  const idempotency = idempotencyModel(connection);

  return {
    /**
     * Claims the key for a request. Of several requests at once exactly one gets `mine`, and may run. The others get
     * `running`, the answer of the first, or `mismatch` if theirs is another request. Safe to repeat. `now`: milliseconds
     * since the epoch.
     */
    async claim(space: Space, claim: IdempotencyClaim, now: number): Promise<ClaimVerdict> {
      const { tenantId } = space;
      const { name: _id, fingerprint, owner } = claim;
      const expiresAt = new Date(now + KEPT_MS);
      const row = { _id, ...spaceFields(space), owner, firstOwner: owner, fingerprint, claimedAt: now, expiresAt };
      for (;;) {
        if (await insertRow(idempotency, row)) return { kind: 'mine', firstOwner: owner };
        const existing = await idempotency.findOne({ _id, tenantId }).lean();
        if (existing === null) continue;
        const firstOwner = existing.firstOwner ?? existing.owner;
        // The answer to an insert can be lost, and the driver tries again.
        if (existing.owner === owner && existing.status === undefined) return { kind: 'mine', firstOwner };
        if (!isOver(existing, now)) return verdictOf(existing, claim);
        if (existing.expiresAt.getTime() > now && existing.fingerprint !== fingerprint) return { kind: 'mismatch' };
        const isRepeat = existing.expiresAt.getTime() > now;
        const taken = isRepeat ? { ...row, firstOwner, expiresAt: existing.expiresAt } : row;
        if (await replaceRow(idempotency, existing, taken)) return { kind: 'mine', firstOwner: taken.firstOwner };
      }
    },

    /** Keeps the claim of a request that still runs; to be called more often than once a minute. */
    async renew(tenantId: string, { name, owner }: IdempotencyClaim, now: number): Promise<void> {
      const running = { _id: name, tenantId, owner, status: { $exists: false } };
      await idempotency.updateOne(running, { $set: { claimedAt: now } });
    },

    /** Stores the answer of the request that has claimed the key. Does nothing if another one has claimed it since. */
    storeAnswer: (tenantId: string, claim: IdempotencyClaim, answer: IdempotentAnswer): Promise<void> =>
      storeAnswer(idempotency, tenantId, claim, answer),

    /** Gives the key back, because the request has changed nothing. If one before it may have, its `firstOwner` stays. */
    async release(tenantId: string, { name, owner }: IdempotencyClaim): Promise<void> {
      const { deletedCount } = await idempotency.deleteOne({ _id: name, tenantId, owner, firstOwner: owner });
      if (deletedCount === 0) await idempotency.updateOne({ _id: name, tenantId, owner }, { $set: { claimedAt: 0 } });
    },
  };
}
