import Joi from 'joi';

import { toMicro } from '../../../shared/domain/pricing.ts';
import type { TierContent, TierRepository, TierRow } from '../../../shared/mongo/routing/tier-repository.ts';
import { atMostSixDecimals, countSchema, SIX_DECIMALS_RULE } from '../../contract/json-schema.ts';
import { CAPABILITIES, CHAT_LIMITS, numberBetween, ROUTED_TIERS } from '../../../shared/contracts/chat-request.ts';
import type { Capability, RoutedTier as Tier } from '../../../shared/contracts/chat-request.ts';
import { KIND_NAMES, TOKEN_KINDS } from '../../../shared/contracts/events.ts';
import type { TokenKinds } from '../../../shared/contracts/events.ts';
import { pageOf, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { TargetCost } from '../../../shared/domain/routing.ts';
import type { ProviderRepository } from '../../../shared/mongo/routing/provider-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { defineAdminEndpoint, ok, exampleList, json, jsonBody, listQuery } from '../../contract/endpoint.ts';
import { maxInFlightSchema, modelSchema } from '../providers/provider-settings.ts';
import {
  TIER_EXAMPLE,
  TIER_VERSION_EXAMPLE,
  eachKind,
  tierListSchema,
  tierResourceSchema,
  tierVersionListSchema,
  toTierResource,
  toTierVersionResource,
} from './tiers-resource.ts';
import type { KindPrices } from './tiers-resource.ts';

export const currencySchema = Joi.string().pattern(/^[a-z]{3}$/);

/** Credits per token. At this rate, a million tokens still cost an exact number of micro-credits. */
const RATE_MAX = 1_000;
const TARGETS_MAX = 100;
const CONTEXT_WINDOW_DEFAULT = 128_000;
/** Of one input. */
const EMBEDDING_WINDOW_DEFAULT = 8_192;
/** Longer answers may not fit into the document of a batch's line (ANSWER_UNITS_MAX), nor into a request's time. */
const OUTPUT_TOKENS_MAX = 131_072;

/** Of a million tokens; a thousand times the dearest model. */
const COST_MAX = 100_000;

interface CostBody extends KindPrices {
  currency: string;
  prompt: number;
  completion: number;
}

interface TargetBody {
  provider: string;
  model: string;
  weight?: number;
  priority?: number;
  context_window?: number;
  max_in_flight?: number | null;
  cost?: CostBody | null;
  capabilities?: Capability[] | null;
  max_output_tokens?: number | null;
}

const costPart = numberBetween(0, COST_MAX).custom(atMostSixDecimals).meta(SIX_DECIMALS_RULE);
const costSchema = Joi.object<CostBody, true>({
  currency: currencySchema.required().description('ISO 4217, lower case; the same for all targets of the tier.'),
  prompt: costPart.required().description('Of a million tokens.'),
  completion: costPart.required().description('Of a million tokens.'),
  ...eachKind((what) => costPart.description(what)),
})
  .allow(null)
  .description('What the provider charges you, for `GET /margin`. Null or absent: unknown.');

const targetSchema = Joi.object<TargetBody, true>({
  provider: Joi.string().max(63).required(),
  model: modelSchema.required(),
  weight: numberBetween(0, 1_000_000).description('The share among targets of one priority; 1 by default.'),
  priority: countSchema(0, 1_000_000).description('A lower one is tried first; 1 by default.'),
  context_window: countSchema(1, 1_000_000_000).description(
    `Tokens; ${CONTEXT_WINDOW_DEFAULT} by default. Of the tier \`embedding\` those of one input; ${EMBEDDING_WINDOW_DEFAULT}.`,
  ),
  max_in_flight: maxInFlightSchema.description(
    "Calls at once; what is above waits in the queue. Null or absent: the provider's, or found.",
  ),
  cost: costSchema,
  capabilities: Joi.array()
    .items(Joi.string().valid(...CAPABILITIES))
    .unique()
    .allow(null)
    .description("What the target can do beyond text. Null or absent: what its provider's kind can."),
  max_output_tokens: countSchema(1, OUTPUT_TOKENS_MAX)
    .allow(null)
    .description(`The longest answer of the model, in tokens. Null or absent: ${CHAT_LIMITS.maxTokensMax}.`),
});

const rate = numberBetween(0, RATE_MAX).custom(atMostSixDecimals).meta(SIX_DECIMALS_RULE);

interface RatesBody extends KindPrices {
  prompt: number;
  completion: number;
}

interface TierBody {
  rates: RatesBody;
  targets: TargetBody[];
}

const tierBodySchema = Joi.object<TierBody, true>({
  rates: Joi.object<RatesBody, true>({
    prompt: rate.required(),
    completion: rate.required(),
    ...eachKind((what) => rate.description(what)),
  })
    .required()
    .description('Credits a token.'),
  targets: Joi.array().items(targetSchema).min(1).max(TARGETS_MAX).required(),
}).required();

/** Does not check whether the providers exist; that needs the database. */
function toTierContent(tier: Tier, { rates, targets }: TierBody): TierContent {
  const windowDefault = tier === 'embedding' ? EMBEDDING_WINDOW_DEFAULT : CONTEXT_WINDOW_DEFAULT;
  return {
    promptRateMicro: toMicro(rates.prompt),
    completionRateMicro: toMicro(rates.completion),
    ...kindsNamed('kindRatesMicro', rates),
    targets: targets.map(
      ({
        context_window: contextWindow,
        max_in_flight: maxInFlight,
        max_output_tokens: maxOutputTokens,
        cost,
        capabilities,
        ...target
      }) => ({
        weight: 1,
        priority: 1,
        ...target,
        contextWindow: contextWindow ?? windowDefault,
        maxInFlight: maxInFlight ?? null,
        ...(cost === undefined || cost === null ? {} : { cost: toTargetCost(cost) }),
        ...(capabilities === undefined || capabilities === null ? {} : { capabilities }),
        ...(maxOutputTokens === undefined || maxOutputTokens === null ? {} : { maxOutputTokens }),
      }),
    ),
  };
}

/** Prices of kinds in micro-units, under a name of their own; absent where no kind has one. */
function kindsNamed<Name extends string>(name: Name, prices: KindPrices): { [N in Name]?: TokenKinds } {
  const kinds: TokenKinds = {};
  for (const kind of KIND_NAMES) {
    const price = prices[TOKEN_KINDS[kind][2]];
    if (price !== undefined) kinds[kind] = toMicro(price);
  }
  return (Object.keys(kinds).length === 0 ? {} : { [name]: kinds }) as { [N in Name]?: TokenKinds };
}

function toTargetCost({ currency, prompt, completion, ...kinds }: CostBody): TargetCost {
  const prices = { promptMicro: toMicro(prompt), completionMicro: toMicro(completion) };
  return { currency, ...prices, ...kindsNamed('kinds', kinds) };
}

/** Sums in two currencies would mean nothing, nor would the cost of a request that one target failed. */
function assertCosts({ targets }: TierBody, isRequired: boolean): void {
  const currency = targets.find(({ cost }) => cost)?.cost?.currency;
  for (const [index, { cost }] of targets.entries()) {
    const param = `targets[${index}].cost`;
    if (!cost && isRequired)
      throw new ServiceError('invalid_request', `\`${param}\` is required (REQUIRE_TARGET_COST).`, { param });
    if (cost && cost.currency !== currency) {
      const sentence = `\`${param}.currency\` must be \`${String(currency)}\`, like that of the tier's other targets.`;
      throw new ServiceError('invalid_request', sentence, { param: `${param}.currency` });
    }
  }
}

export interface TiersDeps {
  tiers: TierRepository;
  providers: ProviderRepository;
  /** REQUIRE_TARGET_COST. */
  isTargetCostRequired: boolean;
  clock: Clock;
}

/** Throws `not_found`. */
function knownTier(name: string): Tier {
  const tier = ROUTED_TIERS.find((known) => known === name);
  if (tier === undefined)
    throw new ServiceError('not_found', `There is no such tier; the tiers are ${ROUTED_TIERS.join(', ')}.`);
  return tier;
}

/** The index of the first target whose provider does not exist; -1: all exist. Throws where one makes no embeddings. */
async function unknownProviderIn({ providers }: TiersDeps, tier: Tier, { targets }: TierContent): Promise<number> {
  const kinds = new Map((await providers.all()).map((row) => [row._id, row.kind]));
  const index = tier === 'embedding' ? targets.findIndex(({ provider }) => kinds.get(provider) === 'anthropic') : -1;
  const param = `targets[${index}].provider`;
  if (index >= 0)
    throw new ServiceError('invalid_request', `\`${param}\` is of the kind anthropic, which has no embeddings.`, {
      param,
    });
  return targets.findIndex((target) => !kinds.has(target.provider));
}

/** Stores the content. If a target's provider does not exist, throws what `refuse` makes of the target's index. */
async function putContent(
  deps: TiersDeps,
  tier: Tier,
  content: TierContent,
  refuse: (index: number) => ServiceError,
): Promise<TierRow> {
  for (;;) {
    const index = await unknownProviderIn(deps, tier, content);
    if (index !== -1) throw refuse(index);
    const row = await deps.tiers.put(tier, content, deps.clock.now());
    if (row !== undefined) return row;
  }
}

const listTiers = defineAdminEndpoint({
  method: 'GET',
  path: '/tiers',
  tag: 'Routing',
  summary: 'List tiers',
  query: listQuery,
  answers: { 200: json('A page of tiers.', tierListSchema) },
  examples: { all: { query: { order: 'asc' }, status: 200, answer: exampleList(TIER_EXAMPLE) } },
  async handle({ query }, { tiers }: TiersDeps) {
    const all = await Promise.all(ROUTED_TIERS.map(async (tier) => toTierResource(tier, await tiers.current(tier))));
    const page = pageOf(all, query, ({ id }) => id);
    return ok(toListPage(page, query.limit, (tier) => tier));
  },
});

const getTier = defineAdminEndpoint({
  method: 'GET',
  path: '/tiers/:tier',
  tag: 'Routing',
  summary: 'Retrieve a tier',
  answers: { 200: json('The tier.', tierResourceSchema) },
  examples: { one: { status: 200, answer: TIER_EXAMPLE } },
  async handle({ params }, { tiers }: TiersDeps) {
    const tier = knownTier(params.tier);
    return ok(toTierResource(tier, await tiers.current(tier)));
  },
});

const putTier = defineAdminEndpoint({
  method: 'PUT',
  path: '/tiers/:tier',
  tag: 'Routing',
  summary: 'Replace a tier',
  description: 'Creates a new version, which applies to new requests at once.',
  body: jsonBody('TierSettings', tierBodySchema),
  answers: { 200: json('The tier.', tierResourceSchema) },
  examples: {
    one_target: {
      body: { rates: TIER_EXAMPLE.rates, targets: [{ provider: 'openai', model: 'gpt-5-mini' }] },
      status: 200,
      answer: TIER_EXAMPLE,
    },
  },
  async handle({ params, body }, deps: TiersDeps) {
    const tier = knownTier(params.tier);
    assertCosts(body, deps.isTargetCostRequired);
    if (tier === 'embedding' && body.rates.completion !== 0)
      throw new ServiceError(
        'invalid_request',
        '`rates.completion` must be 0 for the tier embedding: an embedding has no tokens of its own.',
        { param: 'rates.completion' },
      );
    const content = toTierContent(tier, body);
    const row = await putContent(deps, tier, content, (index) => {
      const param = `targets[${index}].provider`;
      return new ServiceError('invalid_request', `\`${param}\` must be the name of a provider.`, { param });
    });
    return ok(toTierResource(tier, row));
  },
});

const listTierVersions = defineAdminEndpoint({
  method: 'GET',
  path: '/tiers/:tier/versions',
  tag: 'Routing',
  summary: 'List versions of a tier',
  query: listQuery,
  answers: { 200: json('A page of versions.', tierVersionListSchema) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(TIER_VERSION_EXAMPLE) } },
  async handle({ params, query }, { tiers }: TiersDeps) {
    const rows = await tiers.versions(knownTier(params.tier), query);
    return ok(toListPage(rows, query.limit, toTierVersionResource));
  },
});

const rollbackSchema = Joi.object<{ version: number }, true>({
  version: Joi.number().integer().min(1).required().description('The version to return to.'),
}).required();

const rollBackTier = defineAdminEndpoint({
  method: 'POST',
  path: '/tiers/:tier/rollback',
  tag: 'Routing',
  summary: 'Roll back a tier',
  description: 'Creates a new version with the content of an earlier one.',
  body: jsonBody('TierRollback', rollbackSchema),
  answers: { 200: json('The tier.', tierResourceSchema) },
  errors: ['conflict'],
  examples: { first: { body: { version: 1 }, status: 200, answer: TIER_EXAMPLE } },
  async handle({ params, body }, deps: TiersDeps) {
    const tier = knownTier(params.tier);
    const old = await deps.tiers.version(tier, body.version);
    if (old === undefined) {
      throw new ServiceError('not_found', 'The tier has no such version; see GET /admin/v1/tiers/{tier}/versions.', {
        param: 'version',
      });
    }
    const { promptRateMicro, completionRateMicro, kindRatesMicro, targets } = old;
    const kindRates = kindRatesMicro === undefined ? {} : { kindRatesMicro };
    const row = await putContent(
      deps,
      tier,
      { promptRateMicro, completionRateMicro, ...kindRates, targets },
      (index) =>
        new ServiceError(
          'conflict',
          `Version ${old.version} uses the provider ${String(targets[index]?.provider)}, which no longer exists; create it first.`,
        ),
    );
    return ok(toTierResource(tier, row));
  },
});

/** Tiers: their rates and targets (docs/spec.md#administration). */
export const tiersEndpoints = { listTiers, getTier, putTier, listTierVersions, rollBackTier };
