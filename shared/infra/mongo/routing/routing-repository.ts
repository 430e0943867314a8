import type { Provider, RoutingTable, TierConfig } from '../../../domain/routing/routing.ts';
import type { CredentialCipher } from '../credentials.ts';
import type { Models } from '../models.ts';
import type { ProviderRow, TierRow } from '../rows.ts';

export interface RoutingRepository {
  load(): Promise<RoutingTable>;
}

function toProvider(row: ProviderRow, cipher: CredentialCipher): Provider {
  return {
    name: row._id,
    kind: row.kind,
    baseUrl: row.baseUrl,
    timeoutMs: row.timeoutMs,
    firstTokenTimeoutMs: row.firstTokenTimeoutMs,
    maxRetries: row.maxRetries,
    ...(row.breaker === undefined ? {} : { breaker: row.breaker }),
    ...(row.encryptedApiKey === undefined ? {} : { apiKey: cipher.decrypt(row.encryptedApiKey) }),
  };
}

function toTier(row: TierRow): TierConfig {
  return {
    tier: row._id,
    version: row.version,
    rates: { promptMicro: row.promptRateMicro, completionMicro: row.completionRateMicro },
    targets: row.targets.map(({ provider, model, weight, priority, contextWindow }) => ({
      provider,
      model,
      weight,
      priority,
      contextWindow,
    })),
  };
}

export function createRoutingRepository(models: Models, cipher: CredentialCipher): RoutingRepository {
  return {
    async load() {
      const [tiers, providers] = await Promise.all([models.tiers.find().lean(), models.providers.find().lean()]);
      return {
        tiers: Object.fromEntries(tiers.map((row) => [row._id, toTier(row)])),
        providers: new Map(providers.map((row) => [row._id, toProvider(row, cipher)])),
      };
    },
  };
}
