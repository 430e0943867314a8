/**
 * docs/spec.md#rate-limits and docs/spec.md#test-keys: what a tenant gets unless an administrator says
 * otherwise.
 */
export const DEFAULT_LIMITS = {
  rpm: 60,
  tpm: 100_000,
  /** 0 means unlimited. */
  dailyRequests: 0,
  chatRpm: 120,
  streamRpm: 60,
  testDailyTokens: 1_000_000,
} as const;

/** docs/spec.md#tenant-ceilings, docs/spec.md#queue; null would be none. */
export const DEFAULT_CEILINGS = { tenantRpm: 6_000, tenantTpm: 10_000_000, maxInFlight: 1_000 } as const;
export const DEFAULT_WEIGHT = 1;

type Ceilings = Record<keyof typeof DEFAULT_CEILINGS, number | null>;

/** The ceilings of a tenant; null: none. Ceilings that nobody has set are the defaults, for older tenants too. */
export function ceilingsOf(set: { [Name in keyof Ceilings]?: number | null | undefined }): Ceilings {
  const { tenantRpm, tenantTpm, maxInFlight } = DEFAULT_CEILINGS;
  return {
    tenantRpm: set.tenantRpm === undefined ? tenantRpm : set.tenantRpm,
    tenantTpm: set.tenantTpm === undefined ? tenantTpm : set.tenantTpm,
    maxInFlight: set.maxInFlight === undefined ? maxInFlight : set.maxInFlight,
  };
}

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
  return Math.max(TENANT_KEYS * DEFAULT_LIMITS.rpm, rpm);
}

/** Failed authentications per minute and address (docs/spec.md#authentication). */
export const ADDRESS_FAILURES_PER_MINUTE = 60;
