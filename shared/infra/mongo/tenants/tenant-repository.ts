import { Schema } from 'mongoose';
import type { Connection } from 'mongoose';

import type { Tier } from '../../../contracts/chat-request.ts';
import type { ListQuery } from '../../../contracts/list-page.ts';
import type { ModerationSettings } from '../../../contracts/moderation-settings.ts';
import { collection, count, number, options, required, text } from '../collection.ts';
import { listRows } from '../list-rows.ts';

/** Rows as they are stored. Ids are the public ones; times are milliseconds since the epoch. */
export interface TenantRow {
  _id: string;
  name: string;
  status: 'active' | 'suspended';
  /** The shard of Redis that holds everything of this tenant that is in flight; chosen once. */
  shard: number;
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

const tenantSchema = new Schema<TenantRow>(
  {
    _id: required,
    name: required,
    status: required,
    shard: count,
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
);

export const tenantModel = collection<TenantRow>('Tenant', 'tenants', tenantSchema);

type Settings = Omit<TenantRow, '_id' | 'shard' | 'createdAt' | 'keysIssued'>;

/** What an administrator may change. Undefined leaves a setting as it is, null takes an optional one away. */
export type TenantChanges = {
  [Name in keyof Settings]?: Settings[Name] | null | undefined;
};

export interface TenantRepository {
  insert(row: TenantRow): Promise<void>;
  find(tenantId: string): Promise<TenantRow | undefined>;
  /** One row more than the limit. */
  list(query: ListQuery): Promise<TenantRow[]>;
  /** Undefined: no such tenant. */
  update(tenantId: string, changes: TenantChanges): Promise<TenantRow | undefined>;
}

/** Settings for which null is a value, "no bound", and not the absence of one. */
const NULL_IS_A_VALUE: ReadonlySet<string> = new Set(['monthlyTokenBudget', 'tenantRpm', 'tenantTpm', 'maxInFlight']);

function toUpdate(changes: TenantChanges): { $set?: object; $unset?: object } {
  const entries = Object.entries(changes).filter(([, value]) => value !== undefined);
  const removed = entries.filter(([name, value]) => value === null && !NULL_IS_A_VALUE.has(name));
  const set = entries.filter((entry) => !removed.includes(entry));
  return {
    ...(set.length === 0 ? {} : { $set: Object.fromEntries(set) }),
    ...(removed.length === 0 ? {} : { $unset: Object.fromEntries(removed.map(([name]) => [name, 1])) }),
  };
}

export function createTenantRepository(connection: Connection): TenantRepository {
  const tenants = tenantModel(connection);
  return {
    async insert(row) {
      await tenants.create(row);
    },

    async find(tenantId) {
      return (await tenants.findById(tenantId).lean()) ?? undefined;
    },

    list: (query) => listRows(tenants, {}, query),

    async update(tenantId, changes) {
      await tenants.updateOne({ _id: tenantId }, toUpdate(changes));
      return (await tenants.findById(tenantId).lean()) ?? undefined;
    },
  };
}

/** Which shards have tenants, beside those that new tenants are spread over. */
export interface ShardDirectory {
  list(): Promise<number[]>;
}

export function createShardDirectory(connection: Connection, shards: number): ShardDirectory {
  const tenants = tenantModel(connection);
  return {
    async list() {
      const used = await tenants.distinct('shard');
      const fresh = Array.from({ length: shards }, (_, shard) => shard);
      return [...new Set([...fresh, ...used])].sort((a, b) => a - b);
    },
  };
}
