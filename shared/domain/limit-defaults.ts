import { tenantFields } from '../contracts/tenant-fields.ts';

/** Resuming, looking up and cancelling requests, per key (docs/spec.md#rate-limits). */
export const LOOKUPS_PER_MINUTE = 600;

/**
 * What all keys of a tenant together may ask for in a minute beside chat requests, which have the tenant's ceilings, and how
 * often they may look up (docs/spec.md#tenant-ceilings): a tenant may have a hundred keys.
 */
const TENANT_KEYS = 10;
export const TENANT_LOOKUPS_PER_MINUTE = TENANT_KEYS * LOOKUPS_PER_MINUTE;

/** `rpm`: of the key that calls. One that an administrator gave more than usual has all of it. */
export function tenantCallsPerMinute({ rpm }: { rpm: number }): number {
  return Math.max(TENANT_KEYS * tenantFields.rpm.preset, rpm);
}

/** Failed authentications per minute and address (docs/spec.md#authentication). */
export const ADDRESS_FAILURES_PER_MINUTE = 60;
