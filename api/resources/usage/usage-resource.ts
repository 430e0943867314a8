import { ROUTED_TIERS } from '../../../shared/contracts/chat-request.ts';
import type { Tier } from '../../../shared/contracts/chat-request.ts';
import { KIND_NAMES, TOKEN_KINDS } from '../../../shared/contracts/events.ts';
import type { KindName, TokenKind, TokenKinds } from '../../../shared/contracts/events.ts';
import { toCredits } from '../../../shared/domain/pricing.ts';
import { BUCKET_MS } from '../../../shared/domain/roll-up.ts';
import type { UsageSum } from '../../../shared/mongo/accounts/usage-repository.ts';
import type { LedgerRow } from '../../../shared/mongo/accounts/ledger-repository.ts';
import {
  boolean,
  constant,
  field,
  id,
  integer,
  kind,
  listOf,
  named,
  nullable,
  number,
  object,
  oneOf,
  resource,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import type { JsonSchema } from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';
import { TENANT_VIEW, toPageCursor } from './usage-query.ts';
import type { UsagePage, UsageView } from './usage-query.ts';

type KindFields<Value> = Record<`${KindName}_tokens`, Value>;

function eachKind<Value>(make: (kind: TokenKind) => Value): KindFields<Value> {
  const fields = KIND_NAMES.map((kind) => [`${TOKEN_KINDS[kind][2]}_tokens`, make(kind)] as const);
  return Object.fromEntries(fields) as KindFields<Value>;
}

export const tokensByKind = (counts: TokenKinds) => eachKind((kind) => counts[kind] ?? 0);

const kindSchema = (kind: TokenKind) => integer(`Part of \`${TOKEN_KINDS[kind][0]}_tokens\`.`, 0);
const tokenFields = {
  prompt_tokens: integer(undefined, 0),
  completion_tokens: integer(undefined, 0),
  total_tokens: integer(undefined, 0),
  ...eachKind(kindSchema),
  credits: number('Credits that were charged.'),
};
const group = nullable(text('Null where the sums are not grouped by it.'));

const resultFields = {
  object: constant('usage.result'),
  requests: integer(undefined, 0),
  ...tokenFields,
  estimated_requests: integer(
    'Requests whose tokens the service counted or cut, as the provider did not count them believably.',
    0,
  ),
};

/** A page of results of a view; `more`: fields that only this view has. */
export function usagePageSchemaOf(
  [page, result]: readonly [page: string, result: string],
  { dimensions }: UsageView,
  more: Readonly<Record<string, JsonSchema>> = {},
): JsonSchema {
  const groups = Object.fromEntries(Object.keys(dimensions).map((name) => [name, group]));
  const resultSchema = named(result, object({ ...resultFields, ...more, ...groups }));
  return named(page, pageOfBuckets(resultSchema));
}

const pageOfBuckets = (resultSchema: JsonSchema) =>
  object({
    object: constant('page'),
    data: listOf(
      object({
        object: constant('bucket'),
        start_time: time('First moment of the bucket'),
        end_time: time('First moment after the bucket'),
        results: listOf(resultSchema, 'Empty where nothing was used.'),
      }),
    ),
    has_more: boolean(),
    next_page: nullable(text('`page` of the next call.')),
  });

export const usagePageSchema = usagePageSchemaOf(['UsagePage', 'UsageResult'], TENANT_VIEW);

/** Dimensions by which the sums are not grouped are null, and so is the entity of requests without one. */
export function toUsageResult(sum: UsageSum, { dimensions }: UsageView) {
  const { requests, promptTokens, completionTokens, costMicro, estimatedRequests } = sum;
  const groups = Object.entries(dimensions).map(([name, dimension]) => [name, sum[dimension] || null] as const);
  return {
    object: 'usage.result',
    requests,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...tokensByKind(sum),
    credits: toCredits(costMicro),
    estimated_requests: estimatedRequests,
    ...Object.fromEntries(groups),
  };
}

/** One page of buckets; a bucket without usage has no results. */
export function toUsageResource(
  { width, startMs, pageEndMs, endMs }: UsagePage,
  sums: readonly UsageSum[],
  toResult: (sum: UsageSum) => object,
) {
  const byStart = Map.groupBy(sums, (sum) => sum.startMs);
  const count = Math.max(0, (pageEndMs - startMs) / BUCKET_MS[width]);
  const hasMore = pageEndMs < endMs;
  return {
    object: 'page',
    data: Array.from({ length: count }, (_, index) => {
      const bucket = startMs + index * BUCKET_MS[width];
      return {
        object: 'bucket',
        start_time: bucket / 1000,
        end_time: (bucket + BUCKET_MS[width]) / 1000,
        results: (byStart.get(bucket) ?? []).map(toResult),
      };
    }),
    has_more: hasMore,
    next_page: hasMore ? toPageCursor(width, pageEndMs) : null,
  };
}

export const usageRequestResource = resource<[row: LedgerRow]>('UsageRequest', {
  id: field(id('req'), PATH_PARAMETERS.requestId.example, (row) => row.requestId ?? row._id),
  object: kind('usage.request'),
  created_at: field(time('Time of acceptance'), 1_795_255_200, (row) => toSeconds(row.acceptedAt ?? row.createdAt)),
  settled_at: field(time('Time of the booking'), 1_795_255_201, (row) => toSeconds(row.createdAt)),
  key_id: field(nullable(id('key')), PATH_PARAMETERS.keyId.example, (row) => row.keyId),
  mode: field(nullable(oneOf(['live', 'test'])), 'live', (row) => row.mode),
  endpoint: field(nullable(text()), 'chat', (row) => row.endpoint),
  model: field(nullable(oneOf<Tier>(ROUTED_TIERS)), 'mobius', (row) => row.tier),
  entity_id: field(nullable(text()), null, (row) => row.entityId),
  prompt_tokens: field(tokenFields.prompt_tokens, 14, (row) => row.promptTokens ?? 0),
  completion_tokens: field(tokenFields.completion_tokens, 9, (row) => row.completionTokens ?? 0),
  total_tokens: field(
    tokenFields.total_tokens,
    23,
    ({ promptTokens = 0, completionTokens = 0 }) => promptTokens + completionTokens,
  ),
  ...eachKind((kind) => field(kindSchema(kind), 0, (row: LedgerRow) => row[kind] ?? 0)),
  // `0 - x`: a plain minus would turn a test key's cost into -0.
  credits: field(tokenFields.credits, 23, (row) => toCredits(0 - row.amountMicro)),
  estimated: field(
    boolean('The service counted or cut the tokens, as the provider did not count them believably.'),
    false,
    (row) => row.estimated ?? false,
  ),
  finish_reason: field(nullable(text()), 'stop', (row) => row.finishReason),
});
