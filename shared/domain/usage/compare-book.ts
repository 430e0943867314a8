import { monthOf } from '../pricing/pricing.ts';
import { BUCKET_MS, MINUTES_KEPT_MS } from './roll-up.ts';
import type { BucketWidth, RollUpKey, UsageCounts } from './roll-up.ts';

/** The ledger's entries of one kind, added up; of usage by mode and day of acceptance. */
export interface LedgerGroup extends UsageCounts {
  type: string;
  mode: string | undefined;
  /** Start of the day of acceptance (UTC), milliseconds since the epoch; undefined for what is not usage. */
  dayMs: number | undefined;
  /** Signed. */
  amountMicro: number;
}

/** Usage roll-ups of one width and scope, added up by day. */
export interface RollUpGroup extends UsageCounts, Pick<RollUpKey, 'width' | 'scope'> {
  dayMs: number;
}

export interface AccountBook {
  balanceMicro: number;
  tokensByMonth: Readonly<Record<string, number>>;
}

export interface BookComparison {
  /** What the account has to say, by the ledger. */
  correct: AccountBook;
  /** Absolute differences between the ledger and what was made of it; all 0: the book agrees with itself. */
  balanceDriftMicro: number;
  budgetDriftTokens: number;
  usageDriftTokens: number;
  /** Days whose roll-ups have to be made anew. */
  wrongDaysMs: number[];
}

const COUNTS = ['requests', 'promptTokens', 'completionTokens', 'costMicro', 'estimatedRequests'] as const;
const SCOPES = ['all', 'entity'] as const;

function sameCounts(one: UsageCounts | undefined, other: UsageCounts): boolean {
  return one !== undefined && COUNTS.every((name) => one[name] === other[name]);
}

function tokensOf(counts: UsageCounts | undefined): number {
  return counts === undefined ? 0 : counts.promptTokens + counts.completionTokens;
}

function addCounts(sum: UsageCounts | undefined, more: UsageCounts): UsageCounts {
  if (sum === undefined) return { ...more };
  const added = { ...sum };
  for (const name of COUNTS) added[name] += more[name];
  return added;
}

function usageByDay(ledger: readonly LedgerGroup[]): Map<number, UsageCounts> {
  const days = new Map<number, UsageCounts>();
  for (const group of ledger) {
    if (group.type === 'usage' && group.dayMs !== undefined)
      days.set(group.dayMs, addCounts(days.get(group.dayMs), group));
  }
  return days;
}

function budgetByMonth(ledger: readonly LedgerGroup[]): Record<string, number> {
  const months: Record<string, number> = {};
  for (const group of ledger) {
    if (group.type !== 'usage' || group.mode !== 'live' || group.dayMs === undefined) continue;
    const month = monthOf(group.dayMs);
    months[month] = (months[month] ?? 0) + tokensOf(group);
  }
  return months;
}

/**
 * Holds a tenant's account and usage roll-ups against its ledger, which alone is right. Rows of a minute are compared
 * only while they are kept; `now`: milliseconds since the epoch.
 */
export function compareBook(
  ledger: readonly LedgerGroup[],
  account: AccountBook,
  rollUps: readonly RollUpGroup[],
  now: number,
): BookComparison {
  const correct = {
    balanceMicro: ledger.reduce((sum, group) => sum + group.amountMicro, 0),
    tokensByMonth: budgetByMonth(ledger),
  };
  const months = new Set([...Object.keys(correct.tokensByMonth), ...Object.keys(account.tokensByMonth)]);
  let budgetDriftTokens = 0;
  for (const month of months)
    budgetDriftTokens += Math.abs((correct.tokensByMonth[month] ?? 0) - (account.tokensByMonth[month] ?? 0));

  const days = usageByDay(ledger);
  const found = new Map(rollUps.map((group) => [`${group.width} ${group.scope} ${group.dayMs}`, group]));
  const wrongDays = new Set<number>();
  let usageDriftTokens = 0;
  const look = (width: BucketWidth, scope: RollUpKey['scope'], dayMs: number, counts: UsageCounts | undefined) => {
    const group = found.get(`${width} ${scope} ${dayMs}`);
    if (counts === undefined ? group === undefined : sameCounts(group, counts)) return;
    wrongDays.add(dayMs);
    // A difference in anything but tokens is one as well.
    usageDriftTokens += Math.max(1, Math.abs(tokensOf(counts) - tokensOf(group)));
  };
  for (const dayMs of new Set([...days.keys(), ...rollUps.map((group) => group.dayMs)])) {
    for (const scope of SCOPES) {
      look('1d', scope, dayMs, days.get(dayMs));
      look('1h', scope, dayMs, days.get(dayMs));
      if (dayMs > now - MINUTES_KEPT_MS + 2 * BUCKET_MS['1d']) look('1m', scope, dayMs, days.get(dayMs));
    }
  }
  return {
    correct,
    balanceDriftMicro: Math.abs(correct.balanceMicro - account.balanceMicro),
    budgetDriftTokens,
    usageDriftTokens,
    wrongDaysMs: [...wrongDays].sort((a, b) => a - b),
  };
}
