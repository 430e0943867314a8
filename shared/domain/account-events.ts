import { monthOf, toCredits } from './pricing.ts';
import type { WebhookEventData } from '../contracts/webhook-events.ts';

export interface AccountState {
  balanceMicro: number;
  tokensByMonth: Readonly<Record<string, number>>;
  /** The latest grant or purchase and the balance after it; absent: none since this began to be recorded. */
  lastTopUp?: { transactionId: string; balanceMicro: number };
}

/** At or below this share of the balance after the last grant or purchase, credits are low. */
const LOW_SHARE = 0.1;
/** The threshold, as a percentage of the monthly token budget. */
const BUDGET_PERCENT = 80;

type AccountEventType = 'credits.low' | 'credits.depleted' | 'budget.threshold_reached' | 'budget.exceeded';

export const ACCOUNT_EVENT_TYPES = [
  'credits.low',
  'credits.depleted',
  'budget.threshold_reached',
  'budget.exceeded',
] as const satisfies readonly AccountEventType[];

/** Later states give the same `cause` until the next top-up or month. */
export type AccountEvent = {
  [Type in AccountEventType]: { type: Type; cause: string; data: WebhookEventData[Type] };
}[AccountEventType];

function creditEvents({ balanceMicro, lastTopUp }: AccountState): AccountEvent[] {
  if (lastTopUp === undefined) return [];
  const cause = lastTopUp.transactionId;
  const balance = toCredits(balanceMicro);
  if (balanceMicro <= 0) return [{ type: 'credits.depleted', cause, data: { balance } }];
  if (balanceMicro > lastTopUp.balanceMicro * LOW_SHARE) return [];
  const data = { balance, balance_after_last_top_up: toCredits(lastTopUp.balanceMicro) };
  return [{ type: 'credits.low', cause, data }];
}

function budgetEvents({ tokensByMonth }: AccountState, limit: number | null, now: number): AccountEvent[] {
  if (limit === null) return [];
  const key = monthOf(now);
  const used = tokensByMonth[key] ?? 0;
  const month = `${key.slice(0, 4)}-${key.slice(4)}`;
  if (used >= limit) return [{ type: 'budget.exceeded', cause: month, data: { month, limit, used } }];
  if (used < (limit * BUDGET_PERCENT) / 100) return [];
  const data = { month, limit, used, threshold_percent: BUDGET_PERCENT };
  return [{ type: 'budget.threshold_reached', cause: month, data }];
}

/** Each event once per grant, purchase or month. Of two thresholds passed together, only the further one counts. */
export function accountEvents(state: AccountState, monthlyBudget: number | null, now: number): AccountEvent[] {
  return [...creditEvents(state), ...budgetEvents(state, monthlyBudget, now)];
}
