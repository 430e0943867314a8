import type { Connection } from 'mongoose';

import type { Space } from '../../contracts/space.ts';
import { collection, spaceFields } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import type { RowOfSpace } from '../collection.ts';

/** For requests under an `Idempotency-Key` outside the chat routes. */
export interface IdempotencyRow extends RowOfSpace {
  /** Hash of tenant, mode, route family and key. */
  _id: string;
  owner: string;
  /** The first request may have had its effect, so what a later run creates has the same ids. */
  firstOwner?: string;
  /** Of path and body. */
  fingerprint: string;
  /** Last claimed or renewed by `owner`; milliseconds since the epoch. */
  claimedAt: number;
  /** Absent while the request runs. */
  status?: number;
  /** Without anything that is shown once. */
  bodyJson?: string;
  location?: string;
  /** The answer's entity, whose deletion finds the row by it. */
  entityId?: string;
  expiresAt: Date;
}

export const idempotencyModel = collection<IdempotencyRow>('idempotency', [
  [{ tenantId: 1, entityId: 1 }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** A key stands for its first request this long (docs/spec.md#idempotency). */
const KEPT_MS = 24 * 3_600_000;

/** The process of a claim that was not renewed for this time has died; the key's next request may run. */
const CLAIM_MS = 60_000;

export interface IdempotentAnswer {
  status: number;
  bodyJson: string;
  location?: string | undefined;
  /** The answer's entity, if any. */
  entityId?: string | undefined;
}

export interface IdempotencyClaim {
  /** Hash of tenant, mode, route family and key. */
  name: string;
  fingerprint: string;
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

/** The key's claim or answer is past its time. False: another request was faster. */
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
     * Exactly one of several concurrent requests gets `mine`, and may run. Others get `running`, the first one's
     * answer, or `mismatch` if they differ from it. Safe to repeat. `now`: milliseconds since the epoch.
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
        // The insert's answer can be lost, and the driver tries again.
        if (existing.owner === owner && existing.status === undefined) return { kind: 'mine', firstOwner };
        if (!isOver(existing, now)) return verdictOf(existing, claim);
        if (existing.expiresAt.getTime() > now && existing.fingerprint !== fingerprint) return { kind: 'mismatch' };
        const isRepeat = existing.expiresAt.getTime() > now;
        const taken = isRepeat ? { ...row, firstOwner, expiresAt: existing.expiresAt } : row;
        if (await replaceRow(idempotency, existing, taken)) return { kind: 'mine', firstOwner: taken.firstOwner };
      }
    },

    /** Renews a running request's claim; call it more than once a minute. */
    async renew(tenantId: string, { name, owner }: IdempotencyClaim, now: number): Promise<void> {
      const running = { _id: name, tenantId, owner, status: { $exists: false } };
      await idempotency.updateOne(running, { $set: { claimedAt: now } });
    },

    /** Does nothing if another request has claimed the key since. */
    storeAnswer: (tenantId: string, claim: IdempotencyClaim, answer: IdempotentAnswer): Promise<void> =>
      storeAnswer(idempotency, tenantId, claim, answer),

    /** For a request that changed nothing. If an earlier one may have, its `firstOwner` stays. */
    async release(tenantId: string, { name, owner }: IdempotencyClaim): Promise<void> {
      const { deletedCount } = await idempotency.deleteOne({ _id: name, tenantId, owner, firstOwner: owner });
      if (deletedCount === 0) await idempotency.updateOne({ _id: name, tenantId, owner }, { $set: { claimedAt: 0 } });
    },
  };
}
