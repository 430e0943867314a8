import { listQuerySchema } from '../../../shared/contracts/list-page.ts';
import { exampleList } from '../../openapi/example-list.ts';
import { json } from '../../openapi/operation.ts';
import type { OperationsOf } from '../../openapi/operation.ts';
import { PATH_PARAMETERS } from '../../openapi/parameters.ts';
import {
  constant,
  id,
  integer,
  nullable,
  number,
  object,
  oneOf,
  pageSchema,
  ref,
  text,
  time,
} from '../../openapi/schema.ts';
import type { JsonSchema } from '../../openapi/schema.ts';
import { checkoutSchema, TRANSACTION_TYPES, transactionsQuerySchema } from './schema.ts';

const amount = integer("In the currency's minor unit.", 0);
const currency = text('ISO 4217, lower case.');
const payment = oneOf(['stripe', 'test'], 'Who takes the money.');

export const billingSchemas: Readonly<Record<string, JsonSchema>> = {
  BillingStatus: object({
    object: constant('billing.status'),
    balance: number('Credits; below zero where an answer cost more than was left.'),
    held: number('Credits that running requests hold.'),
    available: number('The balance less what is held.'),
    currency: constant('credits'),
    budget: object({
      limit: nullable(integer('Tokens a calendar month; null: no budget.', 1)),
      used: integer(undefined, 0),
      remaining: nullable(integer(undefined, 0)),
      resets_at: time('When the next month begins (UTC)'),
    }),
  }),
  CreditPackage: object({
    id: text(),
    object: constant('billing.package'),
    created_at: time(),
    name: text(),
    credits: number(),
    amount,
    currency,
    expires_at: nullable(time('When it is no longer sold')),
  }),
  CreditPackageList: pageSchema(ref('CreditPackage'), {
    currency,
    price_per_million_credits: nullable(integer('Of free amounts, in minor units; null: only packages are sold.', 0)),
  }),
  Checkout: object({
    id: id('cs'),
    object: constant('billing.checkout'),
    created_at: time(),
    status: oneOf(['open', 'processing', 'completed', 'cancelled', 'expired', 'failed']),
    url: nullable(text('Where the buyer pays; null once it is no longer open.')),
    payment,
    package_id: nullable(text()),
    credits: number(),
    amount,
    currency,
    success_url: text(),
    cancel_url: text(),
    expires_at: time('Until when it can be paid'),
    purchase_id: nullable(id('pur', 'Once it is paid.')),
  }),
  Purchase: object({
    id: id('pur'),
    object: constant('billing.purchase'),
    created_at: time('When it was paid'),
    checkout_id: id('cs'),
    transaction_id: id('txn'),
    payment,
    package_id: nullable(text()),
    credits: number(),
    amount,
    currency,
    refunded_amount: integer('What was paid back, in minor units.', 0),
    refunded_credits: number('What was taken back for it.'),
  }),
  PurchaseList: pageSchema(ref('Purchase')),
  Transaction: object({
    id: id('txn'),
    object: constant('billing.transaction'),
    created_at: time('When it was booked'),
    type: oneOf(TRANSACTION_TYPES),
    credits: number('Below zero where credits went.'),
    balance_after: number(),
    request_id: nullable(id('req', 'Of usage.')),
    purchase_id: nullable(id('pur', 'Of a purchase, or of what was taken back for one.')),
    reason: nullable(text()),
  }),
  TransactionList: pageSchema(ref('Transaction')),
};

const PACKAGE = {
  id: 'starter',
  object: 'billing.package',
  created_at: 1_795_219_200,
  name: 'Starter',
  credits: 1_000_000,
  amount: 500,
  currency: 'usd',
  expires_at: null,
};
const ORDER = {
  credits: 250_000,
  success_url: 'https://example.com/thanks',
  cancel_url: 'https://example.com/credits',
};
const CHECKOUT = {
  id: PATH_PARAMETERS.checkoutId.example,
  object: 'billing.checkout',
  created_at: 1_795_255_200,
  status: 'open',
  url: 'https://pay.example.com/cs_3sD5fG7hJ9kL1qW2eR4tY6uI',
  payment: 'stripe',
  package_id: null,
  amount: 125,
  currency: 'usd',
  ...ORDER,
  expires_at: 1_795_341_600,
  purchase_id: null,
};
const PURCHASE = {
  id: 'pur_3sD5fG7hJ9kL1qW2eR4tY6uI',
  object: 'billing.purchase',
  created_at: 1_795_255_260,
  checkout_id: CHECKOUT.id,
  transaction_id: 'txn_3sD5fG7hJ9kL1qW2eR4tY6uI',
  payment: 'stripe',
  package_id: null,
  credits: 250_000,
  amount: 125,
  currency: 'usd',
  refunded_amount: 0,
  refunded_credits: 0,
};
const TRANSACTION = {
  id: 'txn_4fK2mZ8sQ1xY7bN3vC6tR9wE',
  object: 'billing.transaction',
  created_at: 1_795_255_201,
  type: 'usage',
  credits: -23,
  balance_after: 249_977,
  request_id: PATH_PARAMETERS.requestId.example,
  purchase_id: null,
  reason: null,
};

/** What the document tells of `/billing`. */
export const billingOperations: OperationsOf<
  'getBilling' | 'listBillingPackages' | 'createCheckout' | 'getCheckout' | 'listPurchases' | 'listTransactions'
> = {
  getBilling: {
    tag: 'Billing',
    summary: 'Read balance and budget',
    answers: { 200: json('As requests are admitted by.', ref('BillingStatus')) },
    examples: {
      now: {
        status: 200,
        answer: {
          object: 'billing.status',
          ...{ balance: 249_977, held: 0, available: 249_977, currency: 'credits' },
          budget: { limit: null, used: 23, remaining: null, resets_at: 1_796_083_200 },
        },
      },
    },
  },
  listBillingPackages: {
    tag: 'Billing',
    summary: 'List what is sold',
    query: [listQuerySchema],
    answers: { 200: json('A page of packages, and the price of free amounts.', ref('CreditPackageList')) },
    examples: {
      all: {
        query: { order: 'asc' },
        status: 200,
        answer: exampleList(PACKAGE, { currency: 'usd', price_per_million_credits: 500 }),
      },
    },
  },
  createCheckout: {
    tag: 'Billing',
    summary: 'Begin to buy credits',
    description: 'The buyer pays at `url`. Where the service takes no payments it is 409.',
    headers: ['Idempotency-Key'],
    body: { name: 'NewCheckout', schema: checkoutSchema },
    answers: { 201: json('The checkout.', ref('Checkout'), ['Idempotent-Replayed']) },
    errors: ['not_found'],
    examples: { credits: { summary: 'A free amount', body: ORDER, status: 201, answer: CHECKOUT } },
  },
  getCheckout: {
    tag: 'Billing',
    summary: 'Look a checkout up',
    answers: { 200: json('The checkout.', ref('Checkout')) },
    examples: { one: { status: 200, answer: CHECKOUT } },
  },
  listPurchases: {
    tag: 'Billing',
    summary: 'List purchases',
    query: [listQuerySchema],
    answers: { 200: json('A page of purchases.', ref('PurchaseList')) },
    examples: { newest: { query: { limit: 5 }, status: 200, answer: exampleList(PURCHASE) } },
  },
  listTransactions: {
    tag: 'Billing',
    summary: 'List every booking',
    query: [transactionsQuerySchema, listQuerySchema],
    answers: { 200: json('A page of the ledger.', ref('TransactionList')) },
    examples: {
      usage: { summary: 'What requests cost', query: { type: 'usage' }, status: 200, answer: exampleList(TRANSACTION) },
    },
  },
};
