import type { Connection } from 'mongoose';

import type { KeyMode } from '../../contracts/jobs.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import { createApiKey } from '../../domain/keys/api-key.ts';
import type { Scope } from '../../domain/keys/api-key.ts';
import { ServiceError } from '../../errors/service-error.ts';
import { newId, randomBase62 } from '../../lifecycle/ids.ts';
import { listRows } from './list-rows.ts';
import type { Models } from './models.ts';
import type { KeyRow } from './rows.ts';

/** contract.md section 6. A key that has expired counts no longer. */
const ACTIVE_KEYS_MAX = 100;

export interface KeyRepository {
  /** Throws `not_found` without the tenant, `conflict` when it has 100 active keys; exact under concurrent calls. */
  insert(row: KeyRow, now: number): Promise<void>;
  find(tenantId: string, keyId: string): Promise<KeyRow | undefined>;
  /** One row more than the limit. */
  list(tenantId: string, query: ListQuery): Promise<KeyRow[]>;
  /** Safe to repeat. Undefined: the tenant has no such key. */
  revoke(tenantId: string, keyId: string): Promise<KeyRow | undefined>;
}

export function createKeyRepository(connection: Connection, models: Models): KeyRepository {
  return {
    async insert(row, now) {
      await connection.transaction(async (session) => {
        // Writing the tenant makes concurrent creations take turns, so that none counts before another has inserted.
        const turn = await models.tenants.updateOne({ _id: row.tenantId }, { $inc: { keysIssued: 1 } }, { session });
        if (turn.matchedCount === 0) throw new ServiceError('not_found', 'There is no such tenant.');
        const active = await models.keys.countDocuments(
          {
            tenantId: row.tenantId,
            status: 'active',
            $or: [{ expiresAt: { $exists: false } }, { expiresAt: { $gt: now } }],
          },
          { session },
        );
        if (active >= ACTIVE_KEYS_MAX) {
          throw new ServiceError(
            'conflict',
            `The tenant has ${ACTIVE_KEYS_MAX} active keys, which is the most it may have; revoke one first.`,
          );
        }
        await models.keys.create([row], { session });
      });
    },

    async find(tenantId, keyId) {
      return (await models.keys.findOne({ _id: keyId, tenantId }).lean()) ?? undefined;
    },

    list: (tenantId, query) => listRows(models.keys, { tenantId }, query),

    async revoke(tenantId, keyId) {
      await models.keys.updateOne({ _id: keyId, tenantId }, { $set: { status: 'revoked' } });
      return (await models.keys.findOne({ _id: keyId, tenantId }).lean()) ?? undefined;
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

/** Makes a key for a tenant. `value` is the key itself: it is stored nowhere, so this is the only time it can be shown. */
export async function createKey(
  { keys, keyPrefix }: { keys: Pick<KeyRepository, 'insert'>; keyPrefix: string },
  tenantId: string,
  settings: KeySettings,
  now: number,
): Promise<{ key: KeyRow; value: string }> {
  const { value, hash, redactedValue } = createApiKey(keyPrefix, settings.mode, randomBase62(26));
  const key: KeyRow = {
    _id: newId('key'),
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
