import type { Connection } from 'mongoose';

import type { Principal } from '../../domain/principal.ts';
import { tenantSettingsOf } from '../../contracts/tenant-fields.ts';
import { keyModel } from './key-repository.ts';
import type { KeyRow } from './key-repository.ts';
import { tenantModel } from './tenant-repository.ts';
import type { TenantRow } from './tenant-repository.ts';

export type PrincipalRepository = ReturnType<typeof createPrincipalRepository>;

function toPrincipal(key: KeyRow, tenant: TenantRow): Principal {
  const { tenantRpm, tenantTpm, maxInFlight, ...settings } = tenantSettingsOf(tenant);
  const { rpm, tpm, dailyRequests, chatRpm, streamRpm, ...others } = settings;
  return {
    ...others,
    keyId: key._id,
    tenantId: tenant._id,
    shard: tenant.shard,
    mode: key.mode,
    scopes: key.scopes,
    keyStatus: key.status,
    ...(key.revision === undefined ? {} : { revision: key.revision }),
    tenantStatus: tenant.status,
    limits: {
      rpm: key.rpm ?? rpm,
      tpm: key.tpm ?? tpm,
      dailyRequests: key.dailyRequests ?? dailyRequests,
      chatRpm,
      streamRpm,
    },
    ceilings: { rpm: tenantRpm, tpm: tenantTpm, inFlight: maxInFlight },
    ...(key.expiresAt === undefined ? {} : { expiresAt: key.expiresAt }),
  };
}

export function createPrincipalRepository(connection: Connection) {
  const keys = keyModel(connection);
  const tenants = tenantModel(connection);

  /** A value from before a rotation finds the key, too, which then ends with that value's grace. */
  async function findKey(hash: string): Promise<KeyRow | undefined> {
    // One query, because most unknown hashes are invented ones.
    const key = await keys.findOne({ $or: [{ hash }, { 'previous.hash': hash }] }).lean();
    if (key === null || key.hash === hash) return key ?? undefined;
    const value = key.previous?.find((each) => each.hash === hash);
    if (value === undefined) return undefined;
    return { ...key, expiresAt: Math.min(key.expiresAt ?? Infinity, value.expiresAt) };
  }

  return {
    async findByHash(hash: string): Promise<Principal | undefined> {
      const key = await findKey(hash);
      if (key === undefined) return undefined;
      const tenant = await tenants.findById(key.tenantId).lean();
      return tenant === null ? undefined : toPrincipal(key, tenant);
    },

    /** Works without any value of the key; undefined: no such key. */
    async findByKey(tenantId: string, keyId: string): Promise<Principal | undefined> {
      const [key, tenant] = await Promise.all([
        keys.findOne({ _id: keyId, tenantId }).lean(),
        tenants.findById(tenantId).lean(),
      ]);
      return key === null || tenant === null ? undefined : toPrincipal(key, tenant);
    },

    async touch(lastUsedAt: ReadonlyMap<string, number>): Promise<void> {
      const writes = [...lastUsedAt].map(([_id, time]) => ({
        updateOne: { filter: { _id }, update: { $max: { lastUsedAt: time } } },
      }));
      if (writes.length > 0) await keys.bulkWrite(writes, { ordered: false });
    },
  };
}
