import type { Connection } from 'mongoose';

import type { BreakerSettings } from '../../domain/breaker.ts';
import type { ProviderKind } from '../../domain/routing.ts';
import { ServiceError } from '../../errors/service-error.ts';
import { collection } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import type { CredentialCipher } from '../credentials.ts';

export interface ProviderRow {
  _id: string;
  kind: ProviderKind;
  baseUrl: string;
  /** AES-256-GCM, see shared/mongo/credentials.ts. */
  encryptedApiKey?: string;
  timeoutMs: number;
  firstTokenTimeoutMs: number;
  maxRetries: number;
  /** Missing in rows of versions without breakers. */
  breaker?: BreakerSettings;
  /** Calls at once; null: found. */
  maxInFlight?: number | null;
  /** Rises with every tier that names it, so that a concurrent deletion takes turns with it (tier-repository.ts). */
  timesNamed?: number;
  createdAt: number;
  updatedAt: number;
}

export const providerModel = collection<ProviderRow>('providers');

export interface ProviderSettings extends Omit<
  ProviderRow,
  '_id' | 'encryptedApiKey' | 'timesNamed' | 'createdAt' | 'updatedAt'
> {
  /** Undefined keeps the stored one, null removes it. */
  apiKey?: string | null | undefined;
}

export type ProviderRepository = ReturnType<typeof createProviderRepository>;

const originOf = (url: string) => URL.parse(url)?.origin ?? url;

/** A stored key goes only where it was given for: whoever may not read it must not have it sent elsewhere. */
function assertKeyStays(before: ProviderRow, changes: Partial<ProviderSettings>): void {
  const { kind, baseUrl, apiKey } = { ...before, ...changes };
  if (apiKey !== undefined || before.encryptedApiKey === undefined) return;
  if (kind === before.kind && originOf(baseUrl) === originOf(before.baseUrl)) return;
  throw new ServiceError(
    'invalid_request',
    '`api_key` must be given again, or as null, where `kind` or the origin of `base_url` changes: the stored key is for the provider as it was.',
    { param: 'api_key' },
  );
}

/** Undefined: the row is not `before` any more; a key must not be written to another call's new address. */
async function writeProvider(
  cipher: CredentialCipher,
  providers: ReturnType<typeof providerModel>,
  name: string,
  { apiKey, ...settings }: Partial<ProviderSettings>,
  before: ProviderRow | undefined,
  now: number,
): Promise<{ created: boolean } | undefined> {
  const $set = {
    ...settings,
    updatedAt: now,
    ...(typeof apiKey === 'string' ? { encryptedApiKey: cipher.encrypt(apiKey, `providers/${name}`) } : {}),
  };
  if (before === undefined) {
    try {
      await providers.create({ _id: name, ...$set, createdAt: now });
      return { created: true };
    } catch (error) {
      if (isDuplicateKey(error)) return undefined;
      throw error;
    }
  }
  const { kind, baseUrl, encryptedApiKey = { $exists: false } } = before;
  const { matchedCount } = await providers.updateOne(
    { _id: name, kind, baseUrl, encryptedApiKey },
    { $set, ...(apiKey === null ? { $unset: { encryptedApiKey: 1 as const } } : {}) },
  );
  return matchedCount === 1 ? { created: false } : undefined;
}

export function createProviderRepository(connection: Connection, cipher: CredentialCipher) {
  const providers = providerModel(connection);

  return {
    async find(name: string): Promise<ProviderRow | undefined> {
      return (await providers.findById(name).lean()) ?? undefined;
    },

    all: (): Promise<ProviderRow[]> => providers.find().sort({ _id: 1 }).lean(),

    /**
     * Creates the provider, or sets what `decide` says, which may be called again. A credential that is not given anew
     * stays; throws `invalid_request` where it would go to another server.
     */
    async put(
      name: string,
      decide: (before: ProviderRow | undefined) => Partial<ProviderSettings>,
      now: number,
    ): Promise<{ created: boolean; provider: ProviderRow }> {
      for (;;) {
        const before = (await providers.findById(name).lean()) ?? undefined;
        const settings = decide(before);
        if (before !== undefined) assertKeyStays(before, settings);
        const written = await writeProvider(cipher, providers, name, settings, before, now);
        if (written === undefined) continue;
        const provider = await providers.findById(name).lean();
        if (provider === null) throw new Error(`Provider ${name} was deleted while it was written`);
        return { ...written, provider };
      }
    },
  };
}
