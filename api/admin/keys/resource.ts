import type { KeyRow } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import { toSeconds, toSecondsOrNull } from '../../contract/unix-seconds.ts';

function statusOf(row: KeyRow, now: number): 'active' | 'revoked' | 'expired' {
  if (row.status === 'revoked') return 'revoked';
  return row.expiresAt !== undefined && row.expiresAt <= now ? 'expired' : 'active';
}

function graceEndOf({ previous = [] }: KeyRow, now: number): number | undefined {
  const ends = previous.map(({ expiresAt }) => expiresAt).filter((time) => time > now);
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/** `limits` are the ones that hold: the key's own, else its tenant's. */
export function toKeyResource(row: KeyRow, tenant: Pick<TenantRow, 'rpm' | 'tpm' | 'dailyRequests'>, now: number) {
  return {
    id: row._id,
    object: 'api_key',
    created_at: toSeconds(row.createdAt),
    name: row.name,
    mode: row.mode,
    scopes: row.scopes,
    status: statusOf(row, now),
    limits: {
      rpm: row.rpm ?? tenant.rpm,
      tpm: row.tpm ?? tenant.tpm,
      daily_requests: row.dailyRequests ?? tenant.dailyRequests,
    },
    expires_at: toSecondsOrNull(row.expiresAt),
    last_used_at: toSecondsOrNull(row.lastUsedAt),
    redacted_value: row.redactedValue,
    /** While the value before the last rotation is still accepted. */
    previous_value_expires_at: toSecondsOrNull(graceEndOf(row, now)),
  };
}
