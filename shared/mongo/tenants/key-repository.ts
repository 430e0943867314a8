import type { ClientSession, Connection, Model } from 'mongoose';

import type { KeyMode, SearchedSpace } from '../../contracts/space.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import { createApiKey } from '../../domain/api-key.ts';
import type { Scope } from '../../domain/api-key.ts';
import { flagOf } from '../../domain/principal.ts';
import { ServiceError } from '../../errors/service-error.ts';
import { newId, randomBase62 } from '../../lifecycle/ids.ts';
import { collection, definedOf, toFieldUpdate, listRows, inSpace } from '../collection.ts';
import { CLOSED, tenantModel } from './tenant-repository.ts';

interface PreviousKeyValue {
  hash: string;
  /** Accepted until then. */
  expiresAt: number;
}

export interface KeyRow {
  _id: string;
  tenantId: string;
  /** SHA-256, hex. The key itself is stored nowhere. */
  hash: string;
  /** Earlier values that are still accepted, or were until recently. */
  previous?: PreviousKeyValue[];
  redactedValue: string;
  /** The run under an `Idempotency-Key` of the last rotation. */
  rotatedUnder?: string;
  name: string;
  mode: KeyMode;
  scopes: string[];
  status: 'active' | 'revoked';
  /** Counts how often something that the key allowed was taken back; absent: never. */
  revision?: number;
  expiresAt?: number;
  rpm?: number;
  tpm?: number;
  dailyRequests?: number;
  createdAt: number;
  lastUsedAt?: number;
}

export const keyModel = collection<KeyRow>('keys', [
  [{ hash: 1 }, { unique: true }],
  [{ 'previous.hash': 1 }],
  [{ tenantId: 1, createdAt: -1 }],
  // Revoked and expired keys are never deleted: queries for active keys skip them by this index.
  [{ tenantId: 1, status: 1, expiresAt: 1 }],
]);

/** docs/spec.md#keys. An expired key does not count. */
export const ACTIVE_KEYS_MAX = 100;

/**
 * Calls of `POST /keys` per minute and tenant. A new key has fresh windows, so making and revoking keys would otherwise
 * evade every limit. Twice the active keys: making them all is refused with 409, not made to wait.
 */
export const KEYS_MADE_PER_MINUTE = 2 * ACTIVE_KEYS_MAX;

/** An ingress remembers a key for 15 minutes; these are the last changes that it may have missed. */
const FLAGS_BACK = [0, 1, 2, 3, 4];
const flagsOf = ({ _id: keyId, revision = 0 }: { _id: string; revision?: number }) =>
  FLAGS_BACK.map((back) => flagOf({ keyId, revision: revision - back }));

export type KeyRepository = ReturnType<typeof createKeyRepository>;

/** Undefined leaves a field as it is, null takes it away. */
export type KeyChanges = {
  [Name in 'name' | 'scopes' | 'hash' | 'redactedValue' | 'previous' | 'rotatedUnder' | 'revision']?:
    KeyRow[Name] | undefined;
} & { [Name in 'expiresAt' | 'rpm' | 'tpm' | 'dailyRequests']?: number | null | undefined };

export function applyKeyChanges(key: KeyRow, changes: KeyChanges): KeyRow {
  const merged: Record<string, unknown> = { ...key, ...definedOf(changes) };
  // Only optional fields may be null in the changes, so what is left is a row.
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null)) as unknown as KeyRow;
}

/** Neither revoked nor expired at `now` (milliseconds since the epoch). */
export function isActiveKey({ status, expiresAt }: KeyRow, now: number): boolean {
  return status === 'active' && (expiresAt ?? Infinity) > now;
}

async function assertRoom(keys: Model<KeyRow>, tenantId: string, session: ClientSession, now: number): Promise<void> {
  const active = { tenantId, status: 'active' } as const;
  // Each count reads a range of the index. A common `$or` would read every active row.
  const most = { session, limit: ACTIVE_KEYS_MAX };
  const lasting = await keys.countDocuments({ ...active, expiresAt: { $exists: false } }, most);
  const ending = await keys.countDocuments({ ...active, expiresAt: { $gt: now } }, most);
  if (lasting + ending < ACTIVE_KEYS_MAX) return;
  throw new ServiceError(
    'conflict',
    `The tenant has ${ACTIVE_KEYS_MAX} active keys, which is the most it may have; revoke one first.`,
  );
}

/** Writing the tenant makes concurrent changes take turns, so that each reads what the last one wrote. */
async function takeTurn(tenants: ReturnType<typeof tenantModel>, tenantId: string, session: ClientSession) {
  const tenant = await tenants.findOneAndUpdate({ _id: tenantId }, { $inc: { keysIssued: 1 } }, { session }).lean();
  if (tenant === null) throw new ServiceError('not_found', 'There is no such tenant.');
  return tenant;
}

type DecideChanges = (key: KeyRow) => KeyChanges;

async function changeKey(
  connection: Connection,
  keys: ReturnType<typeof keyModel>,
  tenants: ReturnType<typeof tenantModel>,
  tenantId: string,
  keyId: string,
  now: number,
  decide: DecideChanges,
): Promise<KeyRow | undefined> {
  return connection.transaction(async (session) => {
    await takeTurn(tenants, tenantId, session);
    const key = await keys.findOne({ _id: keyId, tenantId }, undefined, { session }).lean();
    if (key === null) return undefined;
    const changes = decide(key);
    const changed = applyKeyChanges(key, changes);
    if (isActiveKey(changed, now) && !isActiveKey(key, now)) await assertRoom(keys, tenantId, session, now);
    await keys.updateOne({ _id: keyId, tenantId }, toFieldUpdate(changes), { session });
    return changed;
  });
}

export function createKeyRepository(connection: Connection) {
  const keys = keyModel(connection);
  const tenants = tenantModel(connection);

  return {
    /** Throws `not_found`, or `conflict` for a closed tenant or 100 active keys; exact under concurrent calls. */
    async insert(row: KeyRow, now: number): Promise<void> {
      await connection.transaction(async (session) => {
        const { closedAt } = await takeTurn(tenants, row.tenantId, session);
        if (closedAt !== undefined) throw new ServiceError('conflict', CLOSED);
        await assertRoom(keys, row.tenantId, session, now);
        await keys.create([row], { session });
      });
    },

    /**
     * Takes turns with other changes of the tenant's keys: `decide` gets the key as it is and returns changes, or
     * throws; it may be called more than once. Undefined: no such key. Throws `conflict` for the 101st active key.
     */
    change: (tenantId: string, keyId: string, now: number, decide: DecideChanges): Promise<KeyRow | undefined> =>
      changeKey(connection, keys, tenants, tenantId, keyId, now, decide),

    async find(space: SearchedSpace, keyId: string): Promise<KeyRow | undefined> {
      return (await keys.findOne({ _id: keyId, ...inSpace(space) }).lean()) ?? undefined;
    },

    /** Of all a tenant's keys, revoked ones included. */
    async ids(tenantId: string): Promise<string[]> {
      const rows = await keys.find({ tenantId }, { _id: 1 }).lean();
      return rows.map(({ _id }) => _id);
    },

    /** All names that the keys' flags in Redis may have. */
    async flags(tenantId: string): Promise<string[]> {
      const rows = await keys.find({ tenantId }, { revision: 1 }).lean();
      return rows.flatMap(flagsOf);
    },

    list: (space: SearchedSpace, query: ListQuery): Promise<KeyRow[]> => listRows(keys, inSpace(space), query),

    /** Safe to repeat. Undefined: the tenant has no such key. */
    async revoke(tenantId: string, keyId: string): Promise<KeyRow | undefined> {
      await keys.updateOne({ _id: keyId, tenantId }, { $set: { status: 'revoked' } });
      return (await keys.findOne({ _id: keyId, tenantId }).lean()) ?? undefined;
    },
  };
}

export interface KeySettings {
  name: string;
  mode: KeyMode;
  scopes: readonly Scope[];
  /** Milliseconds since the epoch. */
  expiresAt?: number | undefined;
  rpm?: number | undefined;
  tpm?: number | undefined;
  dailyRequests?: number | undefined;
}

/** `value` is the key itself: it is stored nowhere, so it can only be shown now. */
export async function createKey(
  { keys, keyPrefix }: { keys: KeyRepository; keyPrefix: string },
  tenantId: string,
  settings: KeySettings,
  now: number,
  keyId = newId('key'),
): Promise<{ key: KeyRow; value: string }> {
  const { value, hash, redactedValue } = createApiKey(keyPrefix, settings.mode, randomBase62(26));
  const key: KeyRow = {
    _id: keyId,
    tenantId,
    hash,
    redactedValue,
    name: settings.name,
    mode: settings.mode,
    scopes: [...settings.scopes],
    status: 'active',
    createdAt: now,
    ...(settings.expiresAt === undefined ? {} : { expiresAt: settings.expiresAt }),
    ...(settings.rpm === undefined ? {} : { rpm: settings.rpm }),
    ...(settings.tpm === undefined ? {} : { tpm: settings.tpm }),
    ...(settings.dailyRequests === undefined ? {} : { dailyRequests: settings.dailyRequests }),
  };
  await keys.insert(key, now);
  return { key, value };
}

export type ExpiringKeys = ReturnType<typeof createExpiringKeys>;

export function createExpiringKeys(connection: Connection) {
  const keys = keyModel(connection);
  return {
    /** Active keys that end after `from`, at `to` at the latest. */
    async between(tenantId: string, from: number, to: number): Promise<(KeyRow & { expiresAt: number })[]> {
      const rows = await keys.find({ tenantId, status: 'active', expiresAt: { $gt: from, $lte: to } }).lean();
      return rows.flatMap(({ expiresAt, ...key }) => (expiresAt === undefined ? [] : [{ ...key, expiresAt }]));
    },
  };
}
