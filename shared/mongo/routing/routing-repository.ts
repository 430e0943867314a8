import type { Connection } from 'mongoose';

import type { Provider, PublishedModel, RoutingTable, TierConfig } from '../../domain/routing.ts';
import type { CredentialCipher } from '../credentials.ts';
import { providerModel } from './provider-repository.ts';
import type { ProviderRow } from './provider-repository.ts';
import { publishedModelModel, tierModel } from './tier-repository.ts';
import type { PublishedModelRow, TierRow } from './tier-repository.ts';

export type RoutingRepository = ReturnType<typeof createRoutingRepository>;

function toProvider(row: ProviderRow, cipher: CredentialCipher): Provider {
  return {
    name: row._id,
    kind: row.kind,
    baseUrl: row.baseUrl,
    timeoutMs: row.timeoutMs,
    firstTokenTimeoutMs: row.firstTokenTimeoutMs,
    maxRetries: row.maxRetries,
    ...(row.breaker === undefined ? {} : { breaker: row.breaker }),
    ...(typeof row.maxInFlight === 'number' ? { maxInFlight: row.maxInFlight } : {}),
    ...(row.encryptedApiKey === undefined
      ? {}
      : { apiKey: cipher.decrypt(row.encryptedApiKey, `providers/${row._id}`) }),
  };
}

function toTier(row: TierRow): TierConfig {
  return {
    tier: row._id,
    version: row.version,
    rates: {
      promptMicro: row.promptRateMicro,
      completionMicro: row.completionRateMicro,
      ...(row.kindRatesMicro === undefined ? {} : { kinds: row.kindRatesMicro }),
    },
    targets: row.targets.map(({ provider, model, weight, priority, contextWindow, ...set }) => ({
      provider,
      model,
      weight,
      priority,
      contextWindow,
      ...(typeof set.maxInFlight === 'number' ? { maxInFlight: set.maxInFlight } : {}),
      ...(set.cost === undefined ? {} : { cost: set.cost }),
      ...(set.capabilities === undefined ? {} : { capabilities: set.capabilities }),
      ...(set.maxOutputTokens === undefined ? {} : { maxOutputTokens: set.maxOutputTokens }),
    })),
  };
}

const toPublished = ({ tier, target, createdAt }: PublishedModelRow): PublishedModel => ({
  tier,
  createdAt,
  ...(target === undefined ? {} : { target }),
});

export function createRoutingRepository(connection: Connection, cipher: CredentialCipher) {
  const tierRows = tierModel(connection);
  const providerRows = providerModel(connection);
  const modelRows = publishedModelModel(connection);
  return {
    async load(): Promise<RoutingTable> {
      const [tiers, providers, published] = await Promise.all([
        tierRows.find().lean(),
        providerRows.find().lean(),
        modelRows.find().sort({ _id: 1 }).lean(),
      ]);
      const models = new Map(published.map((row) => [row._id, toPublished(row)] as const));
      const table = { providers: new Map<string, Provider>(), unreadable: new Map<string, unknown>() };
      for (const row of providers) {
        try {
          table.providers.set(row._id, toProvider(row, cipher));
        } catch (error) {
          // One bad row must not take the other providers away.
          table.unreadable.set(row._id, error);
        }
      }
      return { tiers: Object.fromEntries(tiers.map((row) => [row._id, toTier(row)])), models, ...table };
    },
  };
}
