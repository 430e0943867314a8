import type { Tier } from '../contracts/chat-request.ts';
import { KIND_NAMES, kindsOf } from '../contracts/events.ts';
import type { TokenKind, TokenKinds } from '../contracts/events.ts';
import type { ChatRoute } from '../contracts/jobs.ts';
import type { KeyMode } from '../contracts/space.ts';
import type { SettlementRecord } from '../contracts/settlement.ts';

/** `GET /usage` has these widths (docs/spec.md#usage). */
export const BUCKET_MS = { '1m': 60_000, '1h': 3_600_000, '1d': 86_400_000 } as const;
export type BucketWidth = keyof typeof BUCKET_MS;

/** Minute buckets can be as many as requests, so they are not kept for ever. */
export const MINUTES_KEPT_MS = 35 * BUCKET_MS['1d'];

/** `estimatedRequests`: tokens counted by the service; `spendNano`: operator's cost, billionths of the currency. */
export const USAGE_COUNTS = [
  'requests',
  'promptTokens',
  'completionTokens',
  'costMicro',
  'estimatedRequests',
  'spendNano',
] as const;
export type UsageCounts = Record<(typeof USAGE_COUNTS)[number], number> & TokenKinds;
/** A kind of which there is nothing is absent. */
export const ALL_COUNTS = [...USAGE_COUNTS, ...KIND_NAMES] as const;

/** Every request is in two rows of each width: scope `all` stays small, as entities do not split it. */
export interface RollUpKey {
  tenantId: string;
  width: BucketWidth;
  /** Start of the bucket (UTC) by the time of acceptance; milliseconds since the epoch. */
  startMs: number;
  keyId: string;
  tier: Tier;
  mode: KeyMode;
  endpoint: ChatRoute;
  /** The target that answered; empty where nobody knows. */
  provider: string;
  model: string;
  /** Of `spendNano`, ISO 4217 in lower case; empty: some called target has no cost. */
  currency: string;
  scope: 'all' | 'entity';
  /** Empty if the request had none, and in scope `all`. */
  entityId: string;
}

/** Tell rows of one tenant, width and time apart. */
export const ROLL_UP_DIMENSIONS = [
  'keyId',
  'tier',
  'mode',
  'endpoint',
  'provider',
  'currency',
  'scope',
  'model',
  'entityId',
] as const satisfies readonly (keyof RollUpKey)[];

export interface RollUp {
  key: RollUpKey;
  counts: UsageCounts;
}

/** Entity ids and names of models may contain any character, so they come last. */
export function rollUpIdOf(key: RollUpKey): string {
  return [
    key.tenantId,
    key.width,
    key.startMs,
    ...ROLL_UP_DIMENSIONS.map((name) => (name === 'model' ? encodeURIComponent(key.model) : key[name])),
  ].join(' ');
}

/** From its outbox record or its ledger entry. */
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
  | 'provider'
  | 'model'
  | 'spend'
  | TokenKind
>;

/** One row of each width and scope, in the order of BUCKET_MS. */
function keysOf({ acceptedAt, entityId = '', spend, ...booked }: BookedRequest): RollUpKey[] {
  const { tenantId, keyId, tier, mode, endpoint, provider, model } = booked;
  return (Object.keys(BUCKET_MS) as BucketWidth[]).flatMap((width) => {
    const startMs = acceptedAt - (acceptedAt % BUCKET_MS[width]);
    const currency = spend?.currency ?? '';
    const row = { tenantId, width, startMs, keyId, tier, mode, endpoint, provider, model, currency };
    return [
      { ...row, scope: 'all' as const, entityId: '' },
      { ...row, scope: 'entity' as const, entityId },
    ];
  });
}

export function addUsageCounts(sum: UsageCounts, more: UsageCounts): void {
  for (const name of USAGE_COUNTS) sum[name] += more[name];
  for (const name of KIND_NAMES) {
    const tokens = more[name] ?? 0;
    if (tokens !== 0) sum[name] = (sum[name] ?? 0) + tokens;
  }
}

const none = (): UsageCounts => ({
  requests: 0,
  promptTokens: 0,
  completionTokens: 0,
  costMicro: 0,
  estimatedRequests: 0,
  spendNano: 0,
});

/** Requests of one minute that differ in nothing else share a group. */
function alike(records: readonly BookedRequest[]): { one: BookedRequest; counts: UsageCounts }[] {
  const groups = new Map<string, { one: BookedRequest; counts: UsageCounts }>();
  for (const one of records) {
    const { tenantId, keyId, tier, mode, endpoint, provider, model, spend, acceptedAt, entityId = '' } = one;
    const minute = Math.floor(acceptedAt / BUCKET_MS['1m']);
    const target = `${provider} ${spend?.currency ?? ''} ${encodeURIComponent(model)}`;
    const name = `${tenantId} ${minute} ${keyId} ${tier} ${mode} ${endpoint} ${target} ${entityId}`;
    let group = groups.get(name);
    if (group === undefined) groups.set(name, (group = { one, counts: none() }));
    const { promptTokens, completionTokens, costMicro, estimated } = one;
    addUsageCounts(group.counts, {
      requests: 1,
      promptTokens,
      completionTokens,
      costMicro,
      estimatedRequests: estimated ? 1 : 0,
      spendNano: spend?.nano ?? 0,
      ...kindsOf(one),
    });
  }
  return [...groups.values()];
}

/** One item per row. */
export function rollUp(records: readonly BookedRequest[]): RollUp[] {
  const rows = new Map<string, RollUp>();
  // Names are made per group, not per record: most of many records are alike.
  for (const { one, counts } of alike(records)) {
    for (const key of keysOf(one)) {
      const id = rollUpIdOf(key);
      const row = rows.get(id) ?? { key, counts: none() };
      rows.set(id, row);
      addUsageCounts(row.counts, counts);
    }
  }
  return [...rows.values()];
}
