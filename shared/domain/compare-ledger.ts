import { monthOf } from './pricing.ts';
import { ALL_COUNTS, BUCKET_MS, MINUTES_KEPT_MS, addUsageCounts } from './roll-up.ts';
import type { BucketWidth, RollUpKey, UsageCounts } from './roll-up.ts';

/** The ledger is always right; this is the answer to a difference. */
export type OnDrift = 'report' | 'repair';

/** Entries of one kind, added up; usage by mode and day of acceptance. */
export interface LedgerGroup extends UsageCounts {
  type: string;
  mode: string | undefined;
  /** Milliseconds since the epoch (UTC); undefined for entries without a request. */
  dayMs: number | undefined;
  /** Signed. */
  amountMicro: number;
}

/** Rows of one day, width and scope, added up. */
export interface RollUpGroup extends UsageCounts, Pick<RollUpKey, 'width' | 'scope'> {}

export interface AccountSums {
  balanceMicro: number;
  tokensByMonth: Readonly<Record<string, number>>;
}

export interface AccountComparison {
  correct: AccountSums;
  /** Absolute differences between the ledger and the account. */
  balanceDriftMicro: number;
  budgetDriftTokens: number;
}

const SCOPES = ['all', 'entity'] as const;

function sameCounts(one: UsageCounts | undefined, other: UsageCounts | undefined): boolean {
  return ALL_COUNTS.every((name) => (one?.[name] ?? 0) === (other?.[name] ?? 0));
}

function tokensOf(counts: UsageCounts | undefined): number {
  return counts === undefined ? 0 : counts.promptTokens + counts.completionTokens;
}

const nameOf = ({ type, mode, dayMs }: LedgerGroup) => `${type} ${mode ?? ''} ${dayMs ?? ''}`;

export function addGroups(one: readonly LedgerGroup[], other: readonly LedgerGroup[]): LedgerGroup[] {
  const sums = new Map(one.map((group) => [nameOf(group), { ...group }]));
  for (const group of other) {
    const sum = sums.get(nameOf(group));
    if (sum === undefined) sums.set(nameOf(group), { ...group });
    else {
      addUsageCounts(sum, group);
      sum.amountMicro += group.amountMicro;
    }
  }
  return [...sums.values()];
}

/** The days of acceptance for which the groups have requests: charges, and adjustments that gave one back. */
export function daysOf(groups: readonly LedgerGroup[]): number[] {
  return [...new Set(groups.flatMap(({ dayMs }) => dayMs ?? []))];
}

/** Undefined: the day has no requests. */
export function usageOfDay(ledger: readonly LedgerGroup[], dayMs: number): UsageCounts | undefined {
  const [first, ...more] = ledger.filter((group) => group.dayMs === dayMs);
  if (first === undefined) return undefined;
  const sum = { ...first };
  for (const group of more) addUsageCounts(sum, group);
  return sum;
}

function budgetByMonth(ledger: readonly LedgerGroup[]): Record<string, number> {
  const months: Record<string, number> = {};
  for (const group of ledger) {
    if (group.dayMs === undefined || group.mode !== 'live') continue;
    const month = monthOf(group.dayMs);
    months[month] = (months[month] ?? 0) + tokensOf(group);
  }
  return months;
}

export function compareAccount(ledger: readonly LedgerGroup[], account: AccountSums): AccountComparison {
  const correct = {
    balanceMicro: ledger.reduce((sum, group) => sum + group.amountMicro, 0),
    tokensByMonth: budgetByMonth(ledger),
  };
  const months = new Set([...Object.keys(correct.tokensByMonth), ...Object.keys(account.tokensByMonth)]);
  let budgetDriftTokens = 0;
  for (const month of months)
    budgetDriftTokens += Math.abs((correct.tokensByMonth[month] ?? 0) - (account.tokensByMonth[month] ?? 0));
  return { correct, balanceDriftMicro: Math.abs(correct.balanceMicro - account.balanceMicro), budgetDriftTokens };
}

/**
 * Rows of a minute are compared only while they are kept; `now`: milliseconds since the epoch. Returns the difference
 * in tokens, at least 1 if anything differs.
 */
export function compareDay(
  dayMs: number,
  counts: UsageCounts | undefined,
  rollUps: readonly RollUpGroup[],
  now: number,
): number {
  const hasMinutes = dayMs > now - MINUTES_KEPT_MS + 2 * BUCKET_MS['1d'];
  const widths: BucketWidth[] = hasMinutes ? ['1d', '1h', '1m'] : ['1d', '1h'];
  let driftTokens = 0;
  for (const width of widths) {
    for (const scope of SCOPES) {
      const group = rollUps.find((each) => each.width === width && each.scope === scope);
      if (sameCounts(group, counts)) continue;
      driftTokens += Math.max(1, Math.abs(tokensOf(counts) - tokensOf(group)));
    }
  }
  return driftTokens;
}
