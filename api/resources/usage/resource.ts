import { toCredits } from '../../../shared/domain/pricing/pricing.ts';
import { BUCKET_MS } from '../../../shared/domain/usage/roll-up.ts';
import type { LedgerRow } from '../../../shared/infra/mongo/accounts/ledger-repository.ts';
import type { UsageSum } from '../../../shared/infra/mongo/accounts/usage-repository.ts';
import { toSeconds } from '../../contract/unix-seconds.ts';
import { DIMENSIONS, toPageCursor } from './parse-usage-query.ts';
import type { UsagePage } from './parse-usage-query.ts';
import { GROUPS } from './schema.ts';

/** Dimensions that the sums are not told apart by are null, as is the entity of requests without one. */
function toResult(sum: UsageSum) {
  const { requests, promptTokens, completionTokens, costMicro, estimatedRequests } = sum;
  const groups = GROUPS.map((group) => [group, sum[DIMENSIONS[group]] || null] as const);
  return {
    object: 'usage.result',
    requests,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    credits: toCredits(costMicro),
    estimated_requests: estimatedRequests,
    ...Object.fromEntries(groups),
  };
}

/** One page of buckets; those without usage are there, with no results. */
export function toUsagePage({ width, startMs, pageEndMs, endMs }: UsagePage, sums: readonly UsageSum[]) {
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

/** A request as it was booked. */
export function toUsageRequest(row: LedgerRow) {
  const { promptTokens = 0, completionTokens = 0 } = row;
  return {
    id: row.requestId ?? row._id,
    object: 'usage.request',
    created_at: toSeconds(row.acceptedAt ?? row.createdAt),
    settled_at: toSeconds(row.createdAt),
    key_id: row.keyId ?? null,
    mode: row.mode ?? null,
    endpoint: row.endpoint ?? null,
    model: row.tier ?? null,
    entity_id: row.entityId ?? null,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    // `0 - x`: a plain minus would make -0 of a test key's cost.
    credits: toCredits(0 - row.amountMicro),
    estimated: row.estimated ?? false,
    finish_reason: row.finishReason ?? null,
  };
}
