import { CAPABILITIES, CHAT_LIMITS, CHAT_TIERS, DECISIVE_FIELDS, ROUTED_TIERS } from '../contracts/chat-request.ts';
import type { Capability, ChatRequest, RoutedTier, Tier } from '../contracts/chat-request.ts';
import type { TokenKinds } from '../contracts/events.ts';
import { ServiceError } from '../errors/service-error.ts';
import type { BreakerSettings } from './breaker.ts';

export const PROVIDER_KINDS = ['openai', 'anthropic', 'simulated'] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

export interface Provider {
  name: string;
  kind: ProviderKind;
  baseUrl: string;
  /** Decrypted; never logged. */
  apiKey?: string;
  /** The whole call. */
  timeoutMs: number;
  firstTokenTimeoutMs: number;
  maxRetries: number;
  /** Undefined: DEFAULT_BREAKER. */
  breaker?: BreakerSettings;
  /** Calls at once, of all models together. Undefined: found, by model. */
  maxInFlight?: number;
}

export interface Target {
  provider: string;
  model: string;
  /** Share among targets of one priority; a target with 0 is tried only when no other is left. */
  weight: number;
  /** Lowest first. */
  priority: number;
  /** Tokens. */
  contextWindow: number;
  /** Undefined: the provider's, or found. */
  maxInFlight?: number;
  /** The provider's price for the operator. Undefined: unknown. */
  cost?: TargetCost;
  /** Beyond text. Undefined: those of its provider's kind. */
  capabilities?: readonly Capability[];
  /** The longest answer that it can make, in tokens. Undefined: CHAT_LIMITS.maxTokensMax. */
  maxOutputTokens?: number;
}

export interface Route {
  target: Target;
  provider: Provider;
}

/** The adapter for Anthropic's protocol maps these; other kinds speak OpenAI's, which passes everything on. */
const ANTHROPIC_CAPABILITIES: readonly Capability[] = ['tools', 'images', 'files'];
/** Fields of OpenAI's protocol that the same adapter maps. */
export const ANTHROPIC_FIELDS: ReadonlySet<string> = new Set([
  'temperature',
  'top_p',
  'stop',
  'user',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
]);

function has({ target, provider }: Route, capability: Capability): boolean {
  const { capabilities = provider.kind === 'anthropic' ? ANTHROPIC_CAPABILITIES : CAPABILITIES } = target;
  return capabilities.includes(capability);
}

/** None of these targets gets them: they change no meaning, and the caller hears of them. */
export function unreadFields(routes: readonly Route[], { passed = {} }: ChatRequest): string[] {
  if (routes.some(({ provider }) => provider.kind !== 'anthropic')) return [];
  return Object.keys(passed).filter((name) => !ANTHROPIC_FIELDS.has(name));
}

/** Names the field at fault, and what it asks in words. */
const ASKED: Readonly<Record<Capability, readonly [param: string, what: string]>> = {
  tools: ['tools', 'tools'],
  custom_tools: ['tools', 'tools of the type `custom`'],
  json_schema: ['response_format', 'a JSON schema'],
  images: ['messages', 'images'],
  audio: ['messages', 'sound'],
  files: ['messages', 'files'],
  logprobs: ['logprobs', 'the probabilities of tokens'],
  openai_fields: ['', ''],
};

function asked(need: Capability, { passed = {} }: ChatRequest): readonly [param: string, what: string] {
  if (need === 'tools' && !('tools' in passed)) return ['messages', 'calls of tools'];
  if (need !== 'openai_fields') return ASKED[need];
  const name = Object.keys(passed).find((field) => DECISIVE_FIELDS.has(field)) ?? '';
  return [name, `\`${name}\``];
}

/** Targets with all that a request needs. Throws `invalid_request` if there are targets but none has it. */
export function servable(routes: readonly Route[], model: string, request: ChatRequest): Route[] {
  const { needs = [] } = request;
  const serving = routes.filter((route) => needs.every((need) => has(route, need)));
  const [first] = needs;
  if (serving.length > 0 || routes.length === 0 || first === undefined) return serving;
  const missing = needs.find((need) => !routes.some((route) => has(route, need)));
  const [param, what] = asked(missing ?? first, request);
  const all = needs.map((need) => asked(need, request)[1]).join(' and ');
  const rule = missing === undefined ? `does not take ${all} in one request` : `does not take ${what}`;
  throw new ServiceError('invalid_request', `The model \`${model}\` ${rule}; leave it out, or use another model.`, {
    param,
  });
}

/** Tells whether a target's answers fit a JSON schema that it is given; others are told of it in words. */
export function enforcesSchema(target: Target, provider: Provider): boolean {
  return has({ target, provider }, 'json_schema');
}

/** Millionths of a currency (ISO 4217, lower case) per million tokens. */
export interface TargetCost {
  currency: string;
  promptMicro: number;
  completionMicro: number;
  kinds?: TokenKinds;
}

/** Micro-credits per token; a kind without a rate has that of its count. */
export interface Rates {
  promptMicro: number;
  completionMicro: number;
  kinds?: TokenKinds;
}

export interface TierConfig {
  tier: Tier;
  version: number;
  rates: Rates;
  targets: Target[];
}

/** A tier costs this before an administrator says otherwise (docs/spec.md#price). */
export const DEFAULT_RATES: Readonly<Record<Tier, Rates>> = {
  mobius: { promptMicro: 1_000_000, completionMicro: 1_000_000 },
  oloid: { promptMicro: 4_000_000, completionMicro: 4_000_000 },
  embedding: { promptMicro: 100_000, completionMicro: 0 },
  moderation: { promptMicro: 0, completionMicro: 0 },
};

export interface PublishedModel {
  tier: RoutedTier;
  /** The only target that serves this name. Undefined: all of the tier. */
  target?: { provider: string; model: string };
  /** Milliseconds since the epoch. */
  createdAt: number;
}

/** One consistent snapshot of all that a worker needs to route. */
export interface RoutingTable {
  tiers: Partial<Record<Tier, TierConfig>>;
  models: ReadonlyMap<string, PublishedModel>;
  providers: ReadonlyMap<string, Provider>;
  /** Left out, because their stored API key cannot be decrypted; the value is the reason. */
  unreadable: ReadonlyMap<string, unknown>;
}

/** More would make a sentence that nobody reads. */
const NAMED_MAX = 20;

/** Throws `model_not_found` for a name that leads to no tier, or to one that cannot serve it. */
export function tierOf({ models }: RoutingTable, { model, task }: ChatRequest, defaultModel: Tier): Tier {
  if (task?.kind === 'moderation') return 'moderation';
  const name = model ?? (task === undefined ? defaultModel : task.kind);
  const serving: readonly RoutedTier[] = task === undefined ? CHAT_TIERS : ['embedding'];
  const leadsTo = models.get(name)?.tier ?? ROUTED_TIERS.find((tier) => tier === name);
  if (leadsTo !== undefined && serving.includes(leadsTo)) return leadsTo;
  const published = [...models].filter(([, { tier }]) => serving.includes(tier)).map(([other]) => other);
  const names = [...serving, ...published].slice(0, NAMED_MAX).join(', ');
  throw new ServiceError(
    'model_not_found',
    `The model \`${name}\` ${leadsTo === undefined ? 'does not exist' : 'does not serve this endpoint'}; the models are ${names}.`,
    { param: 'model' },
  );
}

export function targetsOf({ tiers, models }: RoutingTable, tier: Tier, model: string | undefined): readonly Target[] {
  const targets = tiers[tier]?.targets ?? [];
  const only = model === undefined ? undefined : models.get(model)?.target;
  if (only === undefined) return targets;
  return targets.filter((target) => target.provider === only.provider && target.model === only.model);
}

/** Shortens the answer to the longest that one of these targets can make. */
export function fitAnswer(request: ChatRequest, targets: readonly Target[]): ChatRequest {
  const unsaid = request.isUnbounded === true ? CHAT_LIMITS.maxTokensDefault : CHAT_LIMITS.maxTokensMax;
  let most = targets.length === 0 ? unsaid : 0;
  for (const { maxOutputTokens = unsaid } of targets) most = Math.max(most, maxOutputTokens);
  return request.maxTokens <= most ? request : { ...request, maxTokens: most };
}

/**
 * For admission's counts and holds. Most requests ask for what any target can, and skip the look at targets; a target
 * that only makes shorter answers is asked for those when called.
 */
export function fitRequest(table: RoutingTable, tier: Tier, request: ChatRequest): ChatRequest {
  if (request.maxTokens <= CHAT_LIMITS.maxTokensMax) return request;
  return fitAnswer(request, targetsOf(table, tier, request.model));
}

/** Drops targets whose providers cannot be called; keeps the order. */
export function routesOf({ providers }: RoutingTable, targets: readonly Target[]): Route[] {
  return targets.flatMap((target) => {
    const provider = providers.get(target.provider);
    return provider === undefined ? [] : [{ target, provider }];
  });
}

/** By priority, then by a draw that follows the weights. `random`: from 0 (inclusive) to 1 (exclusive). */
export function orderTargets(targets: readonly Target[], random: () => number): Target[] {
  const priorities = [...new Set(targets.map((target) => target.priority))].sort((a, b) => a - b);
  return priorities.flatMap((priority) =>
    drawByWeight(
      targets.filter((target) => target.priority === priority),
      random,
    ),
  );
}

function drawByWeight(targets: readonly Target[], random: () => number): Target[] {
  const left = [...targets];
  const order: Target[] = [];
  while (left.length > 0) {
    const total = left.reduce((sum, target) => sum + target.weight, 0);
    let point = random() * total;
    const index = left.findIndex((target) => (point -= target.weight) < 0);
    order.push(...left.splice(index === -1 ? 0 : index, 1));
  }
  return order;
}
