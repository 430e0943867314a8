import type { Tier } from '../../../shared/contracts/chat-request.ts';
import { toCredits } from '../../../shared/domain/pricing/pricing.ts';
import { DEFAULT_RATES } from '../../../shared/domain/routing/routing.ts';
import type { TierRow, TierVersionRow } from '../../../shared/infra/mongo/routing/tier-repository.ts';
import type { TierContent } from '../../../shared/infra/mongo/routing/tier-repository.ts';

function contentOf({ promptRateMicro, completionRateMicro, targets }: TierContent) {
  return {
    rates: { prompt: toCredits(promptRateMicro), completion: toCredits(completionRateMicro) },
    targets: targets.map(({ provider, model, weight, priority, contextWindow }) => ({
      provider,
      model,
      weight,
      priority,
      context_window: contextWindow,
    })),
  };
}

/** A tier that was never set is version 0: it costs the default rates and leads nowhere. */
export function toTierResource(tier: Tier, row: TierRow | undefined) {
  const { promptMicro, completionMicro } = DEFAULT_RATES[tier];
  const content = row ?? { promptRateMicro: promptMicro, completionRateMicro: completionMicro, targets: [] };
  return {
    id: tier,
    object: 'tier',
    version: row?.version ?? 0,
    ...contentOf(content),
    updated_at: row === undefined ? null : Math.floor(row.updatedAt / 1000),
  };
}

export function toTierVersionResource(row: TierVersionRow) {
  return {
    id: row._id,
    object: 'tier.version',
    created_at: Math.floor(row.updatedAt / 1000),
    tier: row.tier,
    version: row.version,
    ...contentOf(row),
  };
}
