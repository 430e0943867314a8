import { stringify } from 'csv-stringify/sync';
import type { Request, Response } from 'express';
import Joi from 'joi';

import { toListPage } from '../../shared/contracts/list-page.ts';
import { toCredits, toMajor } from '../../shared/domain/pricing.ts';
import type { LedgerRepository, LedgerRow } from '../../shared/mongo/accounts/ledger-repository.ts';
import type { PriceList, PriceRepository } from '../../shared/mongo/accounts/price-repository.ts';
import type { UsageSum } from '../../shared/mongo/accounts/usage-repository.ts';
import type { TenantRepository } from '../../shared/mongo/tenants/tenant-repository.ts';
import { defineAdminEndpoint, exampleList, ok, SENT } from '../contract/endpoint.ts';
import type { Answer, HandlerResult } from '../contract/endpoint.ts';
import { field, nullable, number, resource, text } from '../contract/json-schema.ts';
import type { FieldsOf, JsonSchema } from '../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../contract/path-parameters.ts';
import { transactionsQuery } from '../resources/billing/billing-endpoints.ts';
import { transactionResource } from '../resources/billing/billing-resource.ts';
import { findTenant } from '../resources/keys/key-changes.ts';
import { readUsage } from '../resources/usage/usage-endpoints.ts';
import type { UsageDeps } from '../resources/usage/usage-endpoints.ts';
import { oneOrMore, toUsagePage, usageFilters, usageQuery } from '../resources/usage/usage-query.ts';
import type { UsageView } from '../resources/usage/usage-query.ts';
import { tokensByKind, toUsageResource, toUsageResult, usagePageSchemaOf } from '../resources/usage/usage-resource.ts';

export interface AdminUsageDeps extends UsageDeps {
  ledger: LedgerRepository;
  prices: PriceRepository;
  tenants: TenantRepository;
}

/** Of all tenants. Here `model` is the provider's, and `tier` what tenants call a model. */
const ADMIN_VIEW = {
  dimensions: {
    tenant_id: 'tenantId',
    key_id: 'keyId',
    tier: 'tier',
    provider: 'provider',
    model: 'model',
    mode: 'mode',
    endpoint: 'endpoint',
  },
  filters: {
    tenant_id: oneOrMore(Joi.string().pattern(/^ten_[0-9A-Za-z]{24}$/)).description('Only of these tenants.'),
    key_id: usageFilters.key_id,
    tier: usageFilters.model,
    provider: oneOrMore(Joi.string().max(63)).description('Only answered by these providers.'),
    model: oneOrMore(Joi.string().max(512)).description("Only answered by these models, by the provider's name."),
    mode: usageFilters.mode,
    endpoint: usageFilters.endpoint,
  },
} as const satisfies UsageView;

const tabular = (description: string, schema: JsonSchema): Answer => ({
  description,
  content: {
    'application/json': schema,
    'text/csv': { type: 'string', description: 'A line of names, then the rows; nothing where there are none.' },
  },
});

/** Sends rows as CSV (RFC 4180) where the caller prefers it. Cells that a spreadsheet would run as formulas are escaped. */
function reply(req: Request, res: Response, body: object, rows: () => readonly object[]): HandlerResult<200> {
  res.vary('Accept');
  if (req.accepts(['application/json', 'text/csv']) !== 'text/csv') return ok(body);
  res
    .type('text/csv')
    .send(stringify([...rows()], { header: true, escape_formulas: true, record_delimiter: 'windows' }));
  return SENT;
}

function rowsOf({ data }: ReturnType<typeof toUsageResource>): object[] {
  return data.flatMap(({ start_time, end_time, results }) =>
    results.map((result) => ({ start_time, end_time, ...result })),
  );
}

const marginFields = {
  currency: nullable(text('Of `cost`, ISO 4217, lower case; null where a target has no cost.')),
  cost: nullable(number('What the provider calls of the requests cost; null: unknown.')),
  price: nullable(number('The credits at the price list of today; null: no price for free amounts.')),
  price_currency: nullable(text('Of `price`.')),
  margin: nullable(number('`price` less `cost`; null where one is unknown or the currencies differ.')),
};

/** Keeps billionths, and hides the rounding of sums. */
const rounded = (amount: number) => Number(amount.toFixed(9));

function marginOf({ currency: of, spendNano, costMicro }: UsageSum, { currency, pricePerMillion }: PriceList) {
  const cost = of === undefined || of === '' ? null : spendNano / 1e9;
  const price = pricePerMillion === null ? null : toMajor((toCredits(costMicro) * pricePerMillion) / 1e6, currency);
  return {
    currency: of === '' ? null : (of ?? null),
    cost,
    price: price === null ? null : rounded(price),
    price_currency: price === null ? null : currency,
    margin: cost === null || price === null || of !== currency ? null : rounded(price - cost),
  } satisfies FieldsOf<typeof marginFields>;
}

const USAGE_RESULT_EXAMPLE = {
  object: 'usage.result',
  requests: 212,
  prompt_tokens: 1_204,
  completion_tokens: 3_377,
  total_tokens: 4_581,
  ...tokensByKind({}),
  credits: 4_581,
  estimated_requests: 0,
};
const GROUPS_EXAMPLE = {
  tenant_id: PATH_PARAMETERS.tenantId.example,
  key_id: null,
  tier: 'mobius',
  provider: 'openai',
  model: 'gpt-5-mini',
  mode: null,
  endpoint: null,
};
const exampleOf = (result: object) => ({
  object: 'page',
  data: [{ object: 'bucket', start_time: 1_795_219_200, end_time: 1_795_305_600, results: [result] }],
  has_more: false,
  next_page: null,
});
const GROUP_BY = ['tenant_id', 'tier', 'provider', 'model'];

const getAdminUsage = defineAdminEndpoint({
  method: 'GET',
  path: '/usage',
  tag: 'Usage',
  summary: 'Retrieve usage of all tenants',
  description: 'By day since the beginning of the month, unless the parameters say otherwise.',
  query: usageQuery(ADMIN_VIEW),
  answers: {
    200: tabular('A page of buckets.', usagePageSchemaOf(['AdminUsagePage', 'AdminUsageResult'], ADMIN_VIEW)),
  },
  examples: {
    by_tenant: {
      query: { group_by: GROUP_BY },
      status: 200,
      answer: exampleOf({ ...USAGE_RESULT_EXAMPLE, ...GROUPS_EXAMPLE }),
    },
  },
  async handle({ req, res, query }, { usage, clock }: AdminUsageDeps) {
    const page = toUsagePage(query, ADMIN_VIEW, clock.now());
    const sums = await readUsage(usage, 'all tenants', page);
    const body = toUsageResource(page, sums, (sum) => toUsageResult(sum, ADMIN_VIEW));
    return reply(req, res, body, () => rowsOf(body));
  },
});

const getMargin = defineAdminEndpoint({
  method: 'GET',
  path: '/margin',
  tag: 'Usage',
  summary: 'Retrieve cost, price and margin',
  description:
    'What provider calls cost by the rates of their targets at the time, calls that failed before an answer included, and what the credits cost the tenants. Requests of targets without a cost have results of their own, whose `cost` is null.',
  query: usageQuery(ADMIN_VIEW),
  answers: {
    200: tabular('A page of buckets.', usagePageSchemaOf(['MarginPage', 'MarginResult'], ADMIN_VIEW, marginFields)),
  },
  examples: {
    by_target: {
      query: { group_by: GROUP_BY },
      status: 200,
      answer: exampleOf({
        ...USAGE_RESULT_EXAMPLE,
        ...GROUPS_EXAMPLE,
        currency: 'usd',
        cost: 0.0020556,
        price: 0.022905,
        price_currency: 'usd',
        margin: 0.0208494,
      }),
    },
  },
  async handle({ req, res, query }, { usage, prices, clock }: AdminUsageDeps) {
    const page = toUsagePage(query, ADMIN_VIEW, clock.now());
    const list = await prices.current();
    const sums = await readUsage(usage, 'all tenants', { ...page, groupBy: [...page.groupBy, 'currency'] });
    const body = toUsageResource(page, sums, (sum) => ({ ...toUsageResult(sum, ADMIN_VIEW), ...marginOf(sum, list) }));
    return reply(req, res, body, () => rowsOf(body));
  },
});

const adminTransactionResource = resource<[row: LedgerRow]>('AdminTransaction', {
  ...transactionResource.fields,
  provider: field(nullable(text('Of usage: the target that answered.')), 'openai', (row) => row.provider),
  model: field(nullable(text("The target's.")), 'gpt-5-mini', (row) => row.model),
  cost: field(
    nullable(number('What the provider calls cost; null: unknown, or no usage.')),
    0.0000201,
    (row) => row.spend && row.spend.nano / 1e9,
  ),
  currency: field(nullable(text('Of `cost`.')), 'usd', (row) => row.spend?.currency),
});

const listTenantTransactions = defineAdminEndpoint({
  method: 'GET',
  path: '/tenants/:tenantId/transactions',
  tag: 'Usage',
  summary: "List a tenant's transactions",
  query: transactionsQuery,
  answers: { 200: tabular('A page of the ledger.', adminTransactionResource.listSchema) },
  examples: { usage: { query: { type: 'usage' }, status: 200, answer: exampleList(adminTransactionResource.example) } },
  async handle({ req, res, params, query }, { ledger, tenants }: AdminUsageDeps) {
    const { _id: tenantId } = await findTenant(tenants, params.tenantId);
    const rows = await ledger.list({ tenantId, mode: 'any' }, query.type, query.list);
    const body = toListPage(rows, query.list.limit, adminTransactionResource.of);
    return reply(req, res, body, () => body.data);
  },
});

/** Usage, payments and costs of all tenants (docs/spec.md#administration). */
export const adminUsageEndpoints = { getAdminUsage, getMargin, listTenantTransactions };
