import type { Connection } from 'mongoose';

import type { Capability, RoutedTier as Tier } from '../../contracts/chat-request.ts';
import type { TokenKinds } from '../../contracts/events.ts';
import type { PublishedModel, TargetCost } from '../../domain/routing.ts';
import { unknownCursor } from '../../contracts/list-page.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import { collection } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import { providerModel } from './provider-repository.ts';

interface TargetRow {
  provider: string;
  model: string;
  weight: number;
  priority: number;
  contextWindow: number;
  /** Null: the provider's, or found. */
  maxInFlight?: number | null;
  cost?: TargetCost;
  /** Absent: those of the provider's kind. */
  capabilities?: Capability[];
  maxOutputTokens?: number;
}

export interface TierRow {
  _id: Tier;
  version: number;
  /** Micro-credits per token. */
  promptRateMicro: number;
  completionRateMicro: number;
  kindRatesMicro?: TokenKinds;
  targets: TargetRow[];
  updatedAt: number;
}

/** Every version of a tier, for rollback; `_id` is `<tier>:<version>`. */
export interface TierVersionRow extends Omit<TierRow, '_id'> {
  _id: string;
  tier: Tier;
}

/** Callers may ask for it; `_id` is the name. */
export interface PublishedModelRow extends PublishedModel {
  _id: string;
  updatedAt: number;
}

export const tierModel = collection<TierRow>('tiers');

export const tierVersionModel = collection<TierVersionRow>('tier_versions', [
  [{ tier: 1, version: -1 }, { unique: true }],
]);

export const publishedModelModel = collection<PublishedModelRow>('published_models');

export type TierContent = Pick<TierRow, 'promptRateMicro' | 'completionRateMicro' | 'kindRatesMicro' | 'targets'>;

export type PublishedModels = ReturnType<typeof createPublishedModels>;

export function createPublishedModels(connection: Connection) {
  const models = publishedModelModel(connection);
  return {
    all: (): Promise<PublishedModelRow[]> => models.find().sort({ _id: 1 }).lean(),
    async find(name: string): Promise<PublishedModelRow | undefined> {
      return (await models.findById(name).lean()) ?? undefined;
    },
    /** Undefined: the name was new. */
    async put(
      name: string,
      { tier, target }: Omit<PublishedModel, 'createdAt'>,
      now: number,
    ): Promise<{ created: boolean; row: PublishedModelRow }> {
      const set = { tier, updatedAt: now, ...(target === undefined ? {} : { target }) };
      const before = await models
        .findOneAndUpdate(
          { _id: name },
          { $set: set, $setOnInsert: { createdAt: now }, ...(target === undefined ? { $unset: { target: 1 } } : {}) },
          { upsert: true },
        )
        .lean();
      return { created: before === null, row: { _id: name, createdAt: before?.createdAt ?? now, ...set } };
    },
    remove: async (name: string): Promise<boolean> => (await models.deleteOne({ _id: name })).deletedCount > 0,
  };
}

/** Another writer may take a drawn version number, so it is drawn again this often. */
const ATTEMPTS_MAX = 20;

export type TierRepository = ReturnType<typeof createTierRepository>;

async function putNext(
  connection: Connection,
  providers: ReturnType<typeof providerModel>,
  tiers: ReturnType<typeof tierModel>,
  tierVersions: ReturnType<typeof tierVersionModel>,
  tier: Tier,
  content: TierContent,
  now: number,
): Promise<TierRow | 'overtaken' | 'without provider'> {
  const names = [...new Set(content.targets.map(({ provider }) => provider))];
  return connection.transaction(async (session) => {
    const named = await providers.updateMany({ _id: { $in: names } }, { $inc: { timesNamed: 1 } }, { session });
    if (named.matchedCount < names.length) return 'without provider';
    const before = await tiers.findById(tier, null, { session }).lean();
    const version = (before?.version ?? 0) + 1;
    const fields = { ...content, version, updatedAt: now };
    if (before === null) {
      await tiers.create([{ _id: tier, ...fields } satisfies TierRow], { session });
    } else {
      const filter = { _id: tier, version: before.version };
      // Replaces all fields: an absent one, such as prices by kind, is removed.
      const result = await tiers.replaceOne(filter, fields, { session });
      if (result.matchedCount === 0) return 'overtaken';
    }
    const kept: TierVersionRow = { _id: `${tier}:${version}`, tier, ...fields };
    await tierVersions.create([kept], { session });
    return { _id: tier, ...fields };
  });
}

async function listVersions(
  tierVersions: ReturnType<typeof tierVersionModel>,
  tier: Tier,
  { limit, after, order }: ListQuery,
): Promise<TierVersionRow[]> {
  const direction = order === 'asc' ? 1 : -1;
  const cursor = after === undefined ? undefined : await tierVersions.findOne({ _id: after, tier }).lean();
  if (cursor === null) throw unknownCursor();
  const beyond = order === 'asc' ? '$gt' : '$lt';
  return tierVersions
    .find({ tier, ...(cursor === undefined ? {} : { version: { [beyond]: cursor.version } }) })
    .sort({ version: direction })
    .limit(limit + 1)
    .lean();
}

export function createTierRepository(connection: Connection) {
  const tiers = tierModel(connection);
  const tierVersions = tierVersionModel(connection);
  const providers = providerModel(connection);

  return {
    /** Undefined: never set. */
    async current(tier: Tier): Promise<TierRow | undefined> {
      return (await tiers.findById(tier).lean()) ?? undefined;
    },

    /**
     * Makes the next version current and keeps it for rollback, both or neither. Undefined: one of its providers does
     * not exist, or is deleted at the same time.
     */
    async put(tier: Tier, content: TierContent, now: number): Promise<TierRow | undefined> {
      for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
        const put = await putNext(connection, providers, tiers, tierVersions, tier, content, now).catch(
          (error: unknown) => {
            if (!isDuplicateKey(error)) throw error;
            return 'overtaken' as const;
          },
        );
        if (put === 'without provider') return undefined;
        if (put !== 'overtaken') return put;
      }
      throw new Error(`Tier ${tier}: ${ATTEMPTS_MAX} other writers were first`);
    },

    versions: (tier: Tier, query: ListQuery): Promise<TierVersionRow[]> => listVersions(tierVersions, tier, query),

    async version(tier: Tier, version: number): Promise<TierVersionRow | undefined> {
      return (await tierVersions.findOne({ tier, version }).lean()) ?? undefined;
    },

    /** Tiers that use the provider keep it, and are returned. */
    removeProvider: (provider: string): Promise<{ isRemoved: boolean; users: Tier[] }> =>
      connection.transaction(async (session) => {
        const rows = await tiers.find({ 'targets.provider': provider }, { _id: 1 }, { session }).lean();
        const users = rows.map((row) => row._id);
        if (users.length > 0) return { isRemoved: false, users };
        const { deletedCount } = await providers.deleteOne({ _id: provider }, { session });
        return { isRemoved: deletedCount > 0, users };
      }),
  };
}
