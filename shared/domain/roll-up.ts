import type { Tier } from '../contracts/chat-request.ts';
import type { ChatRoute } from '../contracts/jobs.ts';
import type { KeyMode } from '../contracts/space.ts';
import type { SettlementRecord } from '../contracts/settlement.ts';

/** The bucket widths of `GET /usage` (docs/spec.md#usage). */
export const BUCKET_MS = { '1m': 60_000, '1h': 3_600_000, '1d': 86_400_000 } as const;
export type BucketWidth = keyof typeof BUCKET_MS;

/** There can be as many minute buckets as requests, so they are not kept for ever. */
export const MINUTES_KEPT_MS = 35 * BUCKET_MS['1d'];

/** What is counted of the requests of one bucket. */
export interface UsageCounts {
  requests: number;
  promptTokens: number;
  completionTokens: number;
  costMicro: number;
  /** How many of the requests have token counts that are our own estimate. */
  estimatedRequests: number;
}

/**
 * Which requests a row sums up. Every request is in two rows of each width: one of scope `all`, which is not split by
 * entity and so stays small, and one of scope `entity`.
 */
export interface RollUpKey {
  tenantId: string;
  width: BucketWidth;
  /** Start of the bucket (UTC) by the time of acceptance; milliseconds since the epoch. */
  startMs: number;
  keyId: string;
  tier: Tier;
  mode: KeyMode;
  endpoint: ChatRoute;
  scope: 'all' | 'entity';
  /** Empty if the request had none, and in scope `all`. */
  entityId: string;
}

export interface RollUp {
  key: RollUpKey;
  counts: UsageCounts;
}

/** A unique name for a row; entity ids may contain any character, so they come last. */
export function rollUpIdOf({
  tenantId,
  width,
  startMs,
  keyId,
  tier,
  mode,
  endpoint,
  scope,
  entityId,
}: RollUpKey): string {
  return [tenantId, width, startMs, keyId, tier, mode, endpoint, scope, entityId].join(' ');
}

/** What a roll-up needs of a booked request, from its outbox record or its ledger entry. */
export type BookedRequest = Pick<
  SettlementRecord,
  | 'tenantId'
  | 'keyId'
  | 'tier'
  | 'mode'
  | 'endpoint'
  | 'entityId'
  | 'acceptedAt'
  | 'promptTokens'
  | 'completionTokens'
  | 'costMicro'
  | 'estimated'
>;

/** The rows of a record: those of the three widths, in the order of BUCKET_MS. */
function keysOf({ tenantId, keyId, tier, mode, endpoint, acceptedAt, entityId = '' }: BookedRequest): RollUpKey[] {
  return (Object.keys(BUCKET_MS) as BucketWidth[]).flatMap((width) => {
    const startMs = acceptedAt - (acceptedAt % BUCKET_MS[width]);
    const row = { tenantId, width, startMs, keyId, tier, mode, endpoint };
    return [
      { ...row, scope: 'all' as const, entityId: '' },
      { ...row, scope: 'entity' as const, entityId },
    ];
  });
}

function add(sum: UsageCounts, counts: UsageCounts): void {
  sum.requests += counts.requests;
  sum.promptTokens += counts.promptTokens;
  sum.completionTokens += counts.completionTokens;
  sum.costMicro += counts.costMicro;
  sum.estimatedRequests += counts.estimatedRequests;
}

const none = (): UsageCounts => ({
  requests: 0,
  promptTokens: 0,
  completionTokens: 0,
  costMicro: 0,
  estimatedRequests: 0,
});

/** Groups the records that belong in the same rows: those of one minute that differ in nothing else. */
function alike(records: readonly BookedRequest[]): { one: BookedRequest; counts: UsageCounts }[] {
  const groups = new Map<string, { one: BookedRequest; counts: UsageCounts }>();
  for (const one of records) {
    const { tenantId, keyId, tier, mode, endpoint, acceptedAt, entityId = '' } = one;
    const minute = Math.floor(acceptedAt / BUCKET_MS['1m']);
    const name = `${tenantId} ${minute} ${keyId} ${tier} ${mode} ${endpoint} ${entityId}`;
    let group = groups.get(name);
    if (group === undefined) groups.set(name, (group = { one, counts: none() }));
    const { promptTokens, completionTokens, costMicro, estimated } = one;
    add(group.counts, { requests: 1, promptTokens, completionTokens, costMicro, estimatedRequests: estimated ? 1 : 0 });
  }
  return [...groups.values()];
}

/** What a batch of settled requests adds to the usage, one item per row. */
export function rollUp(records: readonly BookedRequest[]): RollUp[] {
  const rows = new Map<string, RollUp>();
  // Six names per group, not per record: most of many records are alike.
  for (const { one, counts } of alike(records)) {
    for (const key of keysOf(one)) {
      const id = rollUpIdOf(key);
      const row = rows.get(id) ?? { key, counts: none() };
      rows.set(id, row);
      add(row.counts, counts);
    }
  }
  return [...rows.values()];
}
