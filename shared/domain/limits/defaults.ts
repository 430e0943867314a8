/**
 * docs/spec/interface.md section 8 and docs/spec/contract.md section 5: what a tenant gets unless an administrator says
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

/** Resuming, looking up and cancelling requests, per key (docs/spec/contract.md section 3). */
export const LOOKUPS_PER_MINUTE = 600;

/** Failed authentications a minute and address (docs/spec/contract.md section 2). */
export const ADDRESS_FAILURES_PER_MINUTE = 60;
