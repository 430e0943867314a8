import Joi from 'joi';

import { toMicro } from '../../../shared/domain/pricing/pricing.ts';
import type { TierContent } from '../../../shared/infra/mongo/routing/tier-repository.ts';
import { atMostSixDecimals, countSchema, SIX_DECIMALS_RULE } from '../../contract/number-schemas.ts';

/** Credits a token; a million tokens at this rate are still an exact number of micro-credits. */
const RATE_MAX = 1_000;
const TARGETS_MAX = 100;
const CONTEXT_WINDOW_DEFAULT = 128_000;

interface TargetBody {
  provider: string;
  model: string;
  weight?: number;
  priority?: number;
  context_window?: number;
}

const targetSchema = Joi.object<TargetBody, true>({
  provider: Joi.string().max(63).required(),
  model: Joi.string().max(512).required(),
  weight: Joi.number().min(0).max(1_000_000).description('The share among targets of one priority; 1 by default.'),
  priority: countSchema(0, 1_000_000).description('A lower one is tried first; 1 by default.'),
  context_window: countSchema(1, 1_000_000_000).description(`Tokens; ${CONTEXT_WINDOW_DEFAULT} by default.`),
});

const rate = Joi.number().min(0).max(RATE_MAX).custom(atMostSixDecimals).meta(SIX_DECIMALS_RULE).required();

interface RatesBody {
  prompt: number;
  completion: number;
}

export interface TierBody {
  rates: RatesBody;
  targets: TargetBody[];
}

/** `PUT /tiers/{tier}`. */
export const tierBodySchema = Joi.object<TierBody, true>({
  rates: Joi.object<RatesBody, true>({ prompt: rate, completion: rate }).required().description('Credits a token.'),
  targets: Joi.array().items(targetSchema).min(1).max(TARGETS_MAX).required(),
}).required();

/** Whether the providers exist is checked against the database. */
export function toTierContent({ rates, targets }: TierBody): TierContent {
  return {
    promptRateMicro: toMicro(rates.prompt),
    completionRateMicro: toMicro(rates.completion),
    targets: targets.map(({ provider, model, weight, priority, context_window: contextWindow }) => ({
      provider,
      model,
      weight: weight ?? 1,
      priority: priority ?? 1,
      contextWindow: contextWindow ?? CONTEXT_WINDOW_DEFAULT,
    })),
  };
}
