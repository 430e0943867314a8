import { DEFAULT_RATES } from '../../shared/domain/routing.ts';
import { toCredits } from '../../shared/domain/pricing.ts';
import type { AdminApi } from '../harness/admin-api.ts';
import type { RatesByTier } from './summary.ts';

/** What the administration says about the tenant that pays for a drive. */
export interface Account {
  balance(): Promise<number>;
  rates(): Promise<RatesByTier>;
}

export const RATES_BY_DEFAULT: RatesByTier = Object.fromEntries(
  Object.entries(DEFAULT_RATES).map(([tier, { promptMicro, completionMicro }]) => [
    tier,
    { prompt: toCredits(promptMicro), completion: toCredits(completionMicro) },
  ]),
);

/** If `tenantId` is undefined, takes the only tenant. Rejects with an error of one sentence. */
export async function openAccount(admin: AdminApi, tenantId: string | undefined): Promise<Account> {
  const id = tenantId ?? (await findOnlyTenant(admin));
  return {
    async balance() {
      const tenant = await admin.find(`/admin/v1/tenants/${id}`);
      if (tenant === undefined) throw new Error(`There is no tenant ${id}; --tenant names the one that the key is of.`);
      return Number(tenant['balance']);
    },
    async rates() {
      const tiers = await listOf(admin, '/admin/v1/tiers');
      // docs/spec.md#price: every tier has both rates.
      return Object.fromEntries(tiers.map(({ id: tier, rates }) => [String(tier), rates])) as RatesByTier;
    },
  };
}

async function findOnlyTenant(admin: AdminApi): Promise<string> {
  const tenants = await listOf(admin, '/admin/v1/tenants');
  const [tenant] = tenants;
  if (tenant !== undefined && tenants.length === 1) return String(tenant['id']);
  throw new Error('There is not exactly one tenant: name the one that the key is of with --tenant.');
}

async function listOf(admin: AdminApi, path: string): Promise<Record<string, unknown>[]> {
  const data = (await admin.find(path))?.['data'];
  // Every list of the administration has this form (docs/spec.md#conventions).
  return Array.isArray(data) ? (data as Record<string, unknown>[]) : [];
}
