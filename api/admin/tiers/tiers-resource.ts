import { CAPABILITIES, CHAT_LIMITS, ROUTED_TIERS } from '../../../shared/contracts/chat-request.ts';
import type { RoutedTier as Tier } from '../../../shared/contracts/chat-request.ts';
import { KIND_NAMES, TOKEN_KINDS } from '../../../shared/contracts/events.ts';
import type { KindName, TokenKinds } from '../../../shared/contracts/events.ts';
import { toCredits } from '../../../shared/domain/pricing.ts';
import { DEFAULT_RATES } from '../../../shared/domain/routing.ts';
import type { TargetCost } from '../../../shared/domain/routing.ts';
import type { TierContent, TierRow, TierVersionRow } from '../../../shared/mongo/routing/tier-repository.ts';
import {
  constant,
  integer,
  listOf,
  named,
  nullable,
  number,
  object,
  oneOf,
  pageSchema,
  text,
  time,
  toSeconds,
  toSecondsOrNull,
} from '../../contract/json-schema.ts';
import type { FieldsOf, JsonSchema } from '../../contract/json-schema.ts';

/** Prices of the kinds of tokens that have one of their own. */
export type KindPrices = Partial<Record<KindName, number>>;

export function eachKind<Part>(part: (description: string) => Part): Record<KindName, Part> {
  const parts = KIND_NAMES.map((kind) => {
    const [count, , name] = TOKEN_KINDS[kind];
    return [name, part(`Of tokens of this kind; as \`${count}\` where it is left out.`)];
  });
  return Object.fromEntries(parts) as Record<KindName, Part>;
}

const pricesOf = (what: string, more: Record<string, JsonSchema> = {}) =>
  object(
    { ...more, prompt: number(what), completion: number(what), ...eachKind(number) },
    KIND_NAMES.map((kind) => TOKEN_KINDS[kind][2]),
  );

function kindPricesOf(kinds: TokenKinds = {}): KindPrices {
  const own = KIND_NAMES.filter((kind) => kinds[kind] !== undefined);
  return Object.fromEntries(own.map((kind) => [TOKEN_KINDS[kind][2], toCredits(kinds[kind] ?? 0)]));
}

const contentFields = {
  rates: pricesOf('Credits a token.'),
  targets: listOf(
    object({
      provider: text(),
      model: text(),
      weight: number('The share among targets of one priority.'),
      priority: integer('A lower one is tried first.', 0),
      context_window: integer('Tokens.', 1),
      max_in_flight: nullable(integer("Calls at once, as it is set; null: the provider's, or found.", 1)),
      cost: nullable(pricesOf('Of a million tokens.', { currency: text('ISO 4217, lower case.') })),
      capabilities: nullable({
        ...listOf(oneOf(CAPABILITIES)),
        description: "What it can do beyond text, as it is set; null: what its provider's kind can.",
      }),
      max_output_tokens: nullable(
        integer(`The longest answer of the model, as it is set; null: ${CHAT_LIMITS.maxTokensMax}.`, 1),
      ),
    }),
  ),
};

// Micro-credits and millionths of a currency have the same factor.
const costOf = ({ currency, promptMicro, completionMicro, kinds }: TargetCost) => ({
  currency,
  prompt: toCredits(promptMicro),
  completion: toCredits(completionMicro),
  ...kindPricesOf(kinds),
});

function contentOf({ promptRateMicro, completionRateMicro, kindRatesMicro, targets }: TierContent) {
  return {
    rates: {
      prompt: toCredits(promptRateMicro),
      completion: toCredits(completionRateMicro),
      ...kindPricesOf(kindRatesMicro),
    },
    targets: targets.map(({ contextWindow, maxInFlight, cost, capabilities, maxOutputTokens, ...target }) => ({
      provider: target.provider,
      model: target.model,
      weight: target.weight,
      priority: target.priority,
      context_window: contextWindow,
      max_in_flight: maxInFlight ?? null,
      cost: cost === undefined ? null : costOf(cost),
      capabilities: capabilities ?? null,
      max_output_tokens: maxOutputTokens ?? null,
    })),
  };
}

const tierFields = {
  id: oneOf(ROUTED_TIERS),
  object: constant('tier'),
  version: integer('0 until the tier is first set.', 0),
  ...contentFields,
  updated_at: nullable(time('Time of the latest change')),
};
export const tierResourceSchema = named('Tier', object(tierFields));
export const tierListSchema = named('TierList', pageSchema(tierResourceSchema));

/** A tier that was never set is version 0, with the default rates and no targets. */
export function toTierResource(tier: Tier, row: TierRow | undefined) {
  const { promptMicro, completionMicro } = DEFAULT_RATES[tier];
  const content = row ?? { promptRateMicro: promptMicro, completionRateMicro: completionMicro, targets: [] };
  return {
    id: tier,
    object: 'tier',
    version: row?.version ?? 0,
    ...contentOf(content),
    updated_at: toSecondsOrNull(row?.updatedAt),
  } satisfies FieldsOf<typeof tierFields>;
}

const versionFields = {
  id: text(),
  object: constant('tier.version'),
  created_at: time(),
  tier: oneOf(ROUTED_TIERS),
  version: integer(undefined, 1),
  ...contentFields,
};
export const tierVersionListSchema = named('TierVersionList', pageSchema(named('TierVersion', object(versionFields))));

export function toTierVersionResource(row: TierVersionRow) {
  return {
    id: row._id,
    object: 'tier.version',
    created_at: toSeconds(row.updatedAt),
    tier: row.tier,
    version: row.version,
    ...contentOf(row),
  } satisfies FieldsOf<typeof versionFields>;
}

const CONTENT_EXAMPLE = {
  rates: { prompt: 1, completion: 1 },
  targets: [
    {
      provider: 'openai',
      model: 'gpt-5-mini',
      weight: 1,
      priority: 1,
      context_window: 128_000,
      max_in_flight: null,
      cost: { currency: 'usd', prompt: 0.25, completion: 2 },
      capabilities: null,
      max_output_tokens: null,
    },
  ],
};
export const TIER_EXAMPLE: ReturnType<typeof toTierResource> = {
  id: 'mobius',
  object: 'tier',
  version: 3,
  ...CONTENT_EXAMPLE,
  updated_at: 1_795_255_200,
};
export const TIER_VERSION_EXAMPLE: ReturnType<typeof toTierVersionResource> = {
  id: 'mobius:3',
  object: 'tier.version',
  created_at: 1_795_255_200,
  tier: 'mobius',
  version: 3,
  ...CONTENT_EXAMPLE,
};
