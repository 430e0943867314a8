import type { CredentialCipher } from '../credentials.ts';
import { isDuplicateKey } from '../connection.ts';
import type { Models } from '../models.ts';
import type { ProviderRow } from '../rows.ts';

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

export function createProviderRepository(models: Models, cipher: CredentialCipher): ProviderRepository {
  async function upsert(name: string, { apiKey, ...settings }: ProviderSettings, now: number): Promise<boolean> {
    const result = await models.providers.updateOne(
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
      return (await models.providers.findById(name).lean()) ?? undefined;
    },

    all: () => models.providers.find().sort({ _id: 1 }).lean(),

    async put(name, settings, now) {
      // Two upserts at once may both try to insert; the loser finds the row of the winner and replaces it.
      const created = await upsert(name, settings, now).catch((error: unknown) => {
        if (!isDuplicateKey(error)) throw error;
        return upsert(name, settings, now);
      });
      const provider = await models.providers.findById(name).lean();
      if (provider === null) throw new Error(`Provider ${name} was deleted while it was written`);
      return { created, provider };
    },

    async remove(name) {
      const result = await models.providers.deleteOne({ _id: name });
      return result.deletedCount > 0;
    },
  };
}
