import type { AdminApi } from './admin-api.ts';

/** The highest limits that the administration accepts: no load can reach them. */
export const UNLIMITED = {
  rpm: 1_000_000,
  tpm: 1_000_000_000,
  chat_rpm: 1_000_000,
  stream_rpm: 1_000_000,
  tenant_rpm: null,
  tenant_tpm: null,
  max_in_flight: null,
} as const;
export const CREDITS = 1_000_000_000;

/** Creates a tenant that no limit can stop, and a live key for it. */
export async function openTenant(admin: AdminApi, name: string): Promise<{ tenantId: string; key: string }> {
  const tenant = await admin.send('POST', '/admin/v1/tenants', { name, credits: CREDITS, ...UNLIMITED });
  const tenantId = String(tenant['id']);
  const key = await admin.send('POST', `/admin/v1/tenants/${tenantId}/keys`, { name, mode: 'live', scopes: ['*'] });
  return { tenantId, key: String(key['value']) };
}
