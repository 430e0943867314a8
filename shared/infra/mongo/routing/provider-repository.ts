import { Schema } from 'mongoose';
import type { Connection } from 'mongoose';

import type { BreakerSettings } from '../../../domain/routing/breaker.ts';
import type { ProviderKind } from '../../../domain/routing/routing.ts';
import { collection, count, options, required, text } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import type { CredentialCipher } from '../credentials.ts';

export interface ProviderRow {
  /** The provider's name. */
  _id: string;
  kind: ProviderKind;
  baseUrl: string;
  /** AES-256-GCM, see shared/infra/mongo/credentials.ts. */
  encryptedApiKey?: string;
  timeoutMs: number;
  firstTokenTimeoutMs: number;
  maxRetries: number;
  /** Missing in rows of versions without breakers. */
  breaker?: BreakerSettings;
  createdAt: number;
  updatedAt: number;
}

const breakerSettings = new Schema<BreakerSettings>(
  { windowMs: count, minAttempts: count, failureRatio: count, openMs: count, maxOpenMs: count },
  { _id: false },
);

const providerSchema = new Schema<ProviderRow>(
  {
    _id: required,
    kind: required,
    baseUrl: required,
    encryptedApiKey: text,
    timeoutMs: count,
    firstTokenTimeoutMs: count,
    maxRetries: count,
    breaker: { type: breakerSettings, required: false },
    createdAt: count,
    updatedAt: count,
  },
  options,
);

export const providerModel = collection<ProviderRow>('Provider', 'providers', providerSchema);

export interface ProviderSettings extends Omit<ProviderRow, '_id' | 'encryptedApiKey' | 'createdAt' | 'updatedAt'> {
  /** Undefined keeps the stored one, null removes it. */
  apiKey?: string | null | undefined;
}

export interface ProviderRepository {
  find(name: string): Promise<ProviderRow | undefined>;
  /** Every provider, by name. */
  all(): Promise<ProviderRow[]>;
  /** Creates the provider or replaces all of it but the credential that is not given anew. */
  put(name: string, settings: ProviderSettings, now: number): Promise<{ created: boolean; provider: ProviderRow }>;
  /** False: there was none. */
  remove(name: string): Promise<boolean>;
}

export function createProviderRepository(connection: Connection, cipher: CredentialCipher): ProviderRepository {
  const providers = providerModel(connection);

  async function upsert(name: string, { apiKey, ...settings }: ProviderSettings, now: number): Promise<boolean> {
    const result = await providers.updateOne(
      { _id: name },
      {
        $set: {
          ...settings,
          updatedAt: now,
          ...(typeof apiKey === 'string' ? { encryptedApiKey: cipher.encrypt(apiKey) } : {}),
        },
        $setOnInsert: { createdAt: now },
        ...(apiKey === null ? { $unset: { encryptedApiKey: 1 as const } } : {}),
      },
      { upsert: true },
    );
    return result.upsertedCount > 0;
  }

  return {
    async find(name) {
      return (await providers.findById(name).lean()) ?? undefined;
    },

    all: () => providers.find().sort({ _id: 1 }).lean(),

    async put(name, settings, now) {
      // Two upserts at once may both try to insert; the loser finds the row of the winner and replaces it.
      const created = await upsert(name, settings, now).catch((error: unknown) => {
        if (!isDuplicateKey(error)) throw error;
        return upsert(name, settings, now);
      });
      const provider = await providers.findById(name).lean();
      if (provider === null) throw new Error(`Provider ${name} was deleted while it was written`);
      return { created, provider };
    },

    async remove(name) {
      const result = await providers.deleteOne({ _id: name });
      return result.deletedCount > 0;
    },
  };
}
