import type { AdminApi } from '../../../scripts/harness/admin-api.ts';
import { toMicro } from '../../../shared/domain/pricing.ts';
import type { Tenant } from '../client/caller.ts';
import type { Lab, LabOptions } from './lab.ts';

export interface LabTenants {
  open: Lab['openTenant'];
  /** Tenant → micro-credits that it was given. */
  granted: ReadonlyMap<string, number>;
  /** What no log may name. */
  keys: readonly { name: string; value: string }[];
}

/** The tenants of an experiment, and what its checker has to know of them. */
export function createLabTenants(admin: () => AdminApi, limits: NonNullable<LabOptions['limits']>): LabTenants {
  const granted = new Map<string, number>();
  const keys: { name: string; value: string }[] = [];
  return {
    granted,
    keys,
    async open(credits, more = {}, mode = 'live'): Promise<Tenant> {
      const tenant = await admin().send('POST', '/admin/v1/tenants', { name: 'fault', credits, ...limits, ...more });
      const tenantId = String(tenant['id']);
      const key = await admin().send('POST', `/admin/v1/tenants/${tenantId}/keys`, {
        name: 'fault',
        mode,
        scopes: ['*'],
      });
      granted.set(tenantId, toMicro(credits));
      keys.push({ name: `the API key of ${tenantId}`, value: String(key['value']) });
      return { tenantId, keyId: String(key['id']), key: String(key['value']) };
    },
  };
}
