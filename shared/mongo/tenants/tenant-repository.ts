import { Schema } from 'mongoose';
import type { Connection } from 'mongoose';

import type { Tier } from '../../contracts/chat-request.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import type { ModerationSettings } from '../../contracts/space.ts';
import { collection, count, number, options, required, text, toFieldUpdate, listRows } from '../collection.ts';

/** Rows as they are stored. Ids are the public ones; times are milliseconds since the epoch. */
export interface TenantRow {
  _id: string;
  name: string;
  status: 'active' | 'suspended';
  /** The shard of Redis that holds everything of this tenant that is in flight; only a move changes it. */
  shard: number;
  /** While the tenant is moved to another shard; see tenant-moves.ts. */
  move?: TenantMove;
  defaultModel: Tier;
  rpm: number;
  tpm: number;
  dailyRequests: number;
  chatRpm: number;
  streamRpm: number;
  /** Requests and tokens a minute, and requests in flight, of all keys together; null: no ceiling; absent: the default. */
  tenantRpm?: number | null;
  tenantTpm?: number | null;
  maxInFlight?: number | null;
  /** Of the tenant's turns in the interactive queue. */
  weight?: number;
  /** Tokens a calendar month (UTC); null: no budget. */
  monthlyTokenBudget: number | null;
  /** Tokens a day that all test keys of the tenant share. */
  testDailyTokens: number;
  subject?: string;
  grade?: string;
  onDisconnect: 'cancel' | 'finish';
  /** How long answers stay after their end; absent: the settings of the service. */
  retentionSeconds?: number;
  moderation?: ModerationSettings;
  /** Rises with every new or changed key; writing it makes concurrent changes of the tenant's keys take turns. */
  keysIssued?: number;
  /** The same for webhooks. */
  webhooksMade?: number;
  createdAt: number;
}

/** A move on its way. The tenant's `shard` says whether it has got there. */
export interface TenantMove {
  from: number;
  to: number;
  /** Names the process that moves it: another one that takes over has a token of its own. */
  token: string;
  /** When that process was last heard of. */
  renewedAt: number;
}

const moveSchema = new Schema<TenantMove>(
  { from: count, to: count, token: required, renewedAt: count },
  { _id: false },
);

const tenantSchema = new Schema<TenantRow>(
  {
    _id: required,
    name: required,
    status: required,
    shard: count,
    move: { type: moveSchema, required: false },
    defaultModel: required,
    rpm: count,
    tpm: count,
    dailyRequests: count,
    chatRpm: count,
    streamRpm: count,
    tenantRpm: number,
    tenantTpm: number,
    maxInFlight: number,
    weight: number,
    monthlyTokenBudget: { type: Number, default: null },
    testDailyTokens: count,
    subject: text,
    grade: text,
    onDisconnect: required,
    retentionSeconds: number,
    moderation: { type: Schema.Types.Mixed },
    keysIssued: number,
    webhooksMade: number,
    createdAt: count,
  },
  options,
).index({ shard: 1 });

export const tenantModel = collection<TenantRow>('Tenant', 'tenants', tenantSchema);

type Settings = Omit<TenantRow, '_id' | 'shard' | 'move' | 'createdAt' | 'keysIssued'>;

/** What an administrator may change. Undefined leaves a setting as it is, null takes an optional one away. */
export type TenantChanges = {
  [Name in keyof Settings]?: Settings[Name] | null | undefined;
};

export type TenantRepository = ReturnType<typeof createTenantRepository>;

/** Settings for which null is a value, "no bound", and not the absence of one. */
const NULL_IS_A_VALUE: ReadonlySet<string> = new Set(['monthlyTokenBudget', 'tenantRpm', 'tenantTpm', 'maxInFlight']);

export function createTenantRepository(connection: Connection) {
  const tenants = tenantModel(connection);
  return {
    async insert(row: TenantRow): Promise<void> {
      await tenants.create(row);
    },

    async find(tenantId: string): Promise<TenantRow | undefined> {
      return (await tenants.findById(tenantId).lean()) ?? undefined;
    },

    /** Those of the tenants that are on another shard than this one. */
    elsewhere: (shard: number, tenantIds: readonly string[]): Promise<Pick<TenantRow, '_id' | 'shard'>[]> =>
      tenants.find({ _id: { $in: [...tenantIds] }, shard: { $ne: shard } }, { shard: 1 }).lean(),

    /** One row more than the limit. */
    list: (query: ListQuery): Promise<TenantRow[]> => listRows(tenants, {}, query),

    /** Undefined: no such tenant. */
    async update(tenantId: string, changes: TenantChanges): Promise<TenantRow | undefined> {
      await tenants.updateOne({ _id: tenantId }, toFieldUpdate(changes, NULL_IS_A_VALUE));
      return (await tenants.findById(tenantId).lean()) ?? undefined;
    },
  };
}

/** Which shards there are: those that new tenants are spread over, and those that have tenants. */
export type ShardDirectory = ReturnType<typeof createShardDirectory>;

/** `shards`: how many new tenants are spread over. */
export function createShardDirectory(connection: Connection, shards: number) {
  const tenants = tenantModel(connection);
  const fresh = Array.from({ length: shards }, (_, shard) => shard);
  return {
    async list(): Promise<number[]> {
      const used = await tenants.distinct('shard');
      return [...new Set([...fresh, ...used])].sort((a, b) => a - b);
    },

    /** How many tenants each of the shards for new tenants has, by its number. */
    async tenantsByShard(): Promise<number[]> {
      const groups = await tenants.aggregate<{ _id: number; count: number }>([
        { $group: { _id: '$shard', count: { $sum: 1 } } },
      ]);
      const counts = new Map(groups.map(({ _id, count: tenantsThere }) => [_id, tenantsThere]));
      return fresh.map((shard) => counts.get(shard) ?? 0);
    },
  };
}
