import Joi from 'joi';

import { atMostSixDecimals } from '../../contract/credits.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { toMicro } from '../../../shared/domain/pricing/pricing.ts';
import type { TierContent } from '../../../shared/infra/mongo/routing/tier-repository.ts';

/** Credits a token; a million tokens at this rate are still an exact number of micro-credits. */
const RATE_MAX = 1_000;
const TARGETS_MAX = 100;
const CONTEXT_WINDOW_DEFAULT = 128_000;

const rate = Joi.number().min(0).max(RATE_MAX).custom(atMostSixDecimals).required();

const target = Joi.object({
  provider: Joi.string().max(63).required(),
  model: Joi.string().max(512).required(),
  weight: Joi.number().min(0).max(1_000_000),
  priority: Joi.number().integer().min(0).max(1_000_000),
  context_window: Joi.number().integer().min(1).max(1_000_000_000),
});

const tierSchema = Joi.object({
  rates: Joi.object({ prompt: rate, completion: rate }).required(),
  targets: Joi.array().items(target).min(1).max(TARGETS_MAX).required(),
}).required();

const rollbackSchema = Joi.object({ version: Joi.number().integer().min(1).required() }).required();

interface TierBody {
  rates: { prompt: number; completion: number };
  targets: { provider: string; model: string; weight?: number; priority?: number; context_window?: number }[];
}

/** Throws `invalid_request`. Whether the providers exist is checked against the database. */
export function parseTier(input: unknown): TierContent {
  checkAgainst(tierSchema, input);
  // The schema has just checked every field of this shape.
  const { rates, targets } = input as TierBody;
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

/** Throws `invalid_request`. */
export function parseRollback(input: unknown): number {
  checkAgainst(rollbackSchema, input);
  // The schema has just checked the only field.
  return (input as { version: number }).version;
}
