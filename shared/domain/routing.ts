import { CHAT_TIERS, ROUTED_TIERS } from '../contracts/chat-request.ts';
import type { ChatRequest, RoutedTier, Tier } from '../contracts/chat-request.ts';
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
  /** Share among targets of the same priority; a target with 0 is tried only when no other is left. */
  weight: number;
  /** Lowest first. */
  priority: number;
  /** Tokens. */
  contextWindow: number;
  /** Calls at once. Undefined: the provider's, or found. */
  maxInFlight?: number;
  /** The price that the provider charges the operator. Undefined: unknown. */
  cost?: TargetCost;
}

/** Whether a target's answers fit a JSON schema that it is given; others are told of it in words. */
export function enforcesSchema(_target: Target, { kind }: Provider): boolean {
  return kind !== 'anthropic';
}

/** Millionths of a currency (ISO 4217, lower case) per million tokens. */
export interface TargetCost {
  currency: string;
  promptMicro: number;
  completionMicro: number;
}

/** Micro-credits per token. */
export interface Rates {
  promptMicro: number;
  completionMicro: number;
}

export interface TierConfig {
  tier: Tier;
  version: number;
  rates: Rates;
  targets: Target[];
}

/** docs/spec.md#price: what a tier costs before an administrator says otherwise. */
export const DEFAULT_RATES: Readonly<Record<Tier, Rates>> = {
  mobius: { promptMicro: 1_000_000, completionMicro: 1_000_000 },
  oloid: { promptMicro: 4_000_000, completionMicro: 4_000_000 },
  embedding: { promptMicro: 100_000, completionMicro: 0 },
  moderation: { promptMicro: 0, completionMicro: 0 },
};

/** A name that an administrator publishes. */
export interface PublishedModel {
  tier: RoutedTier;
  /** The only target of the tier that serves it. Undefined: all do. */
  target?: { provider: string; model: string };
  /** Milliseconds since the epoch. */
  createdAt: number;
}

/** Everything a worker needs to route: one consistent snapshot. */
export interface RoutingTable {
  tiers: Partial<Record<Tier, TierConfig>>;
  /** By their names. */
  models: ReadonlyMap<string, PublishedModel>;
  providers: ReadonlyMap<string, Provider>;
  /** Providers that are left out because their stored API key cannot be decrypted, with the reason. */
  unreadable: ReadonlyMap<string, unknown>;
}

/** More would make a sentence that nobody reads. */
const NAMED_MAX = 20;

/** The tier that serves a request. Throws `model_not_found` for a name that leads to none, or to one that cannot. */
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

/** The targets of the tier that may serve a request for this name. */
export function targetsOf({ tiers, models }: RoutingTable, tier: Tier, model: string | undefined): readonly Target[] {
  const targets = tiers[tier]?.targets ?? [];
  const only = model === undefined ? undefined : models.get(model)?.target;
  if (only === undefined) return targets;
  return targets.filter((target) => target.provider === only.provider && target.model === only.model);
}

/**
 * The order in which a request tries a tier's targets: by priority, then by a draw that follows the weights.
 * `random` returns numbers from 0 (inclusive) to 1 (exclusive).
 */
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
