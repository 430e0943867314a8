import type { AdminApi } from '../harness/admin-api.ts';
import type { DemoKey, StartState } from './state.ts';

const CREDITS = 1_000_000;

export interface DemoTenant {
  tenantId: string;
  liveKey: DemoKey;
  testKey: DemoKey;
}

/** Finds the tenant and keys of an earlier start, or creates what is missing; afterwards, `state` holds them. */
export async function ensureTenant(
  admin: AdminApi,
  keyPrefix: string,
  state: StartState,
  fields: object = { credits: CREDITS },
): Promise<DemoTenant> {
  const known = state.tenantId === undefined ? undefined : await admin.find(tenantPath(state.tenantId));
  let tenantId = known === undefined ? undefined : state.tenantId;
  if (tenantId === undefined) {
    const tenant = await admin.send('POST', '/admin/v1/tenants', { name: 'Demo', ...fields });
    tenantId = String(tenant['id']);
    state.tenantId = tenantId;
    delete state.liveKey;
    delete state.testKey;
  }
  const liveKey = await ensureKey(admin, tenantId, 'live', keyPrefix, state.liveKey);
  state.liveKey = liveKey;
  const testKey = await ensureKey(admin, tenantId, 'test', keyPrefix, state.testKey);
  state.testKey = testKey;
  return { tenantId, liveKey, testKey };
}

async function ensureKey(
  admin: AdminApi,
  tenantId: string,
  mode: 'live' | 'test',
  keyPrefix: string,
  known: DemoKey | undefined,
): Promise<DemoKey> {
  const path = `${tenantPath(tenantId)}/keys`;
  if (known?.value.startsWith(`${keyPrefix}_sk_`) === true) {
    const key = await admin.find(`${path}/${known.id}`);
    if (key?.['status'] === 'active') return known;
  }
  const { id, value } = await admin.send('POST', path, { name: `Demo (${mode})`, mode, scopes: ['*'] });
  return { id: String(id), value: String(value) };
}

const tenantPath = (tenantId: string) => `/admin/v1/tenants/${tenantId}`;
