import { monthOf, toCredits } from '../../../shared/domain/pricing.ts';
import type { AccountRepository } from '../../../shared/mongo/accounts/account-repository.ts';
import type { TenantPlace } from '../../../shared/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../../shared/redis/stores/account-store.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { defineEndpoint, ok, json } from '../../contract/endpoint.ts';
import { constant, integer, named, nullable, number, object, time } from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';

/** Numbers of micro-credits are exact up to 2^53; the rest up to there is left for usage. */
export const BALANCE_MICRO_MAX = 8_000_000_000_000_000;

export type Balance = Awaited<ReturnType<typeof readBalance>>;

export interface BalanceDeps {
  accounts: AccountRepository;
  accountStore: AccountStore;
}

/** Reads a consistent set of figures from Redis; the ledger balance comes from MongoDB if Redis has not loaded it. */
export async function readBalance({ accounts, accountStore }: BalanceDeps, tenant: TenantPlace, now: number) {
  const month = monthOf(now);
  const figures = await accountStore.read(tenant.shard, tenant._id, month);
  const book = figures.ledgerMicro === undefined ? await accounts.read(tenant._id) : undefined;
  return {
    /** The ledger balance minus the pending charges of finished requests. */
    balanceMicro: (figures.ledgerMicro ?? book?.balanceMicro ?? 0) - figures.pendingMicro,
    /** Held for requests in progress. */
    heldMicro: figures.heldMicro,
    /** Of the month's budget. */
    usedTokens: figures.budgetUsedTokens + (book?.tokensByMonth[month] ?? 0),
  };
}

/** Live figures do not concern test keys (docs/spec.md#test-keys). */
const OF_TEST_KEYS: Balance = { balanceMicro: 0, heldMicro: 0, usedTokens: 0 };

export type BillingStatusDeps = BalanceDeps & { clock: Clock };

const fields = {
  object: constant('billing.status'),
  balance: number('Credits; below zero where an answer cost more than was left.'),
  held: number('Credits held by requests in progress.'),
  available: number('The balance less what is held.'),
  currency: constant('credits'),
  budget: object({
    limit: nullable(integer('Tokens a calendar month; null: no budget.', 1)),
    used: integer(undefined, 0),
    remaining: nullable(integer(undefined, 0)),
    resets_at: time('Beginning of the next month (UTC)'),
  }),
};

/** The start of the calendar month (UTC) after the one that contains the time. */
function nextMonthStart(timeMs: number): number {
  const date = new Date(timeMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

async function readStatus(deps: BillingStatusDeps, { tenantId, shard, mode, monthlyTokenBudget }: Principal) {
  const now = deps.clock.now();
  const isTest = mode === 'test';
  const limit = isTest ? null : monthlyTokenBudget;
  const tenant = { _id: tenantId, shard };
  const { balanceMicro, heldMicro, usedTokens: used } = isTest ? OF_TEST_KEYS : await readBalance(deps, tenant, now);
  return {
    object: 'billing.status',
    balance: toCredits(balanceMicro),
    held: toCredits(heldMicro),
    available: toCredits(balanceMicro - heldMicro),
    currency: 'credits',
    budget: {
      limit,
      used,
      remaining: limit === null ? null : Math.max(0, limit - used),
      resets_at: nextMonthStart(now) / 1000,
    },
  } satisfies FieldsOf<typeof fields>;
}

export const getBilling = defineEndpoint({
  method: 'GET',
  path: '/billing',
  scopes: ['billing'],
  tag: 'Billing',
  summary: 'Retrieve balance and budget',
  answers: { 200: json('The figures by which requests are admitted.', named('BillingStatus', object(fields))) },
  examples: {
    now: {
      status: 200,
      answer: {
        object: 'billing.status',
        balance: 249_977,
        held: 0,
        available: 249_977,
        currency: 'credits',
        budget: { limit: null, used: 23, remaining: null, resets_at: 1_796_083_200 },
      },
    },
  },
  async handle({ principal }, deps: BillingStatusDeps) {
    return ok(await readStatus(deps, principal));
  },
});
