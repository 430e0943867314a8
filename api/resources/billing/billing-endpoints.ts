import Joi from 'joi';

import {
  listQuerySchema,
  pageOf,
  parseListQuery,
  toListPage,
  unknownCursor,
} from '../../../shared/contracts/list-page.ts';
import type { ListQuery } from '../../../shared/contracts/list-page.ts';
import { isPayable } from '../../../shared/domain/pricing.ts';
import { overseenBy } from '../../../shared/contracts/space.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import type { LedgerRepository, LedgerType } from '../../../shared/mongo/accounts/ledger-repository.ts';
import type { PurchaseRepository } from '../../../shared/mongo/accounts/purchase-repository.ts';
import { defineEndpoint, ok, exampleList, json, listQuery } from '../../contract/endpoint.ts';
import type { QueryRule } from '../../contract/endpoint.ts';
import { found } from '../../contract/path-parameters.ts';
import {
  checkoutResource,
  packageResource,
  packageListSchema,
  purchaseResource,
  transactionResource,
  TRANSACTION_TYPES,
} from './billing-resource.ts';
import { getBilling } from './billing-status.ts';
import { createCheckout, mayBuy } from './create-checkout.ts';
import type { CreateCheckoutDeps } from './create-checkout.ts';

export interface BillingDeps extends CreateCheckoutDeps {
  purchases: PurchaseRepository;
  ledger: LedgerRepository;
}

const listBillingPackages = defineEndpoint({
  method: 'GET',
  path: '/billing/packages',
  scopes: ['billing'],
  tag: 'Billing',
  summary: 'List credit packages',
  query: listQuery,
  answers: { 200: json('A page of packages, and the price of free amounts.', packageListSchema) },
  examples: {
    all: {
      query: { order: 'asc' },
      status: 200,
      answer: exampleList(packageResource.example, { currency: 'usd', price_per_million_credits: 500 }),
    },
  },
  async handle({ query }, { prices, clock }: BillingDeps) {
    const { packages, currency, pricePerMillion } = await prices.current();
    const now = clock.now();
    // A price list from an earlier version may contain prices that cannot be paid.
    const sold = packages.filter(
      ({ amount, expiresAt }) => (expiresAt === undefined || expiresAt > now) && isPayable(amount, currency),
    );
    const page = toListPage(
      pageOf(sold, query, ({ id }) => id),
      query.limit,
      (row) => packageResource.of(row, currency),
    );
    return ok({ ...page, currency, price_per_million_credits: pricePerMillion });
  },
});

const getCheckout = defineEndpoint({
  method: 'GET',
  path: '/billing/checkout/:checkoutId',
  scopes: ['billing'],
  tag: 'Billing',
  summary: 'Retrieve a checkout',
  answers: { 200: json('The checkout.', checkoutResource.schema) },
  examples: { one: { status: 200, answer: checkoutResource.example } },
  async handle({ principal, params }, { checkouts, clock }: BillingDeps) {
    const checkout = found(
      mayBuy(principal) ? await checkouts.find(principal.tenantId, params.checkoutId) : undefined,
      'checkoutId',
    );
    return ok(checkoutResource.of(checkout, clock.now()));
  },
});

const listPurchases = defineEndpoint({
  method: 'GET',
  path: '/billing/purchases',
  scopes: ['billing'],
  tag: 'Billing',
  summary: 'List purchases',
  query: listQuery,
  answers: { 200: json('A page of purchases.', purchaseResource.listSchema) },
  examples: { newest: { query: { limit: 5 }, status: 200, answer: exampleList(purchaseResource.example) } },
  async handle({ principal, query }, { purchases }: BillingDeps) {
    if (!mayBuy(principal) && query.after !== undefined) throw unknownCursor();
    const rows = mayBuy(principal) ? await purchases.list(principal.tenantId, query) : [];
    return ok(toListPage(rows, query.limit, purchaseResource.of));
  },
});

const transactionsQuerySchema = Joi.object<{ type?: LedgerType }, true>({
  type: Joi.string()
    .valid(...TRANSACTION_TYPES)
    .description('Entries of this type only.'),
}).unknown();

export const transactionsQuery: QueryRule<{ list: ListQuery; type: LedgerType | undefined }> = {
  schemas: [transactionsQuerySchema, listQuerySchema],
  read(query) {
    const list = parseListQuery(query);
    checkAgainst(transactionsQuerySchema, query);
    return { list, type: query.type };
  },
};

const listTransactions = defineEndpoint({
  method: 'GET',
  path: '/billing/transactions',
  scopes: ['billing'],
  tag: 'Billing',
  summary: 'List transactions',
  query: transactionsQuery,
  answers: { 200: json('A page of the ledger.', transactionResource.listSchema) },
  examples: {
    usage: {
      summary: 'What requests cost',
      query: { type: 'usage' },
      status: 200,
      answer: exampleList(transactionResource.example),
    },
  },
  async handle({ principal, query }, { ledger }: BillingDeps) {
    const rows = await ledger.list(overseenBy(principal), query.type, query.list);
    // The balance after an entry is the live one.
    const shown = mayBuy(principal) ? rows : rows.map((row) => ({ ...row, balanceAfterMicro: 0 }));
    return ok(toListPage(shown, query.list.limit, transactionResource.of));
  },
});

/** Credits: balance, packages, purchases and every booking (docs/spec.md#billing). */
export const billingEndpoints = {
  getBilling,
  listBillingPackages,
  createCheckout,
  getCheckout,
  listPurchases,
  listTransactions,
};
