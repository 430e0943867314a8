import type { Usage } from '../../../shared/contracts/events.ts';
import { priceUsage } from '../../../shared/domain/pricing/pricing.ts';
import type { Rates } from '../../../shared/domain/routing/routing.ts';
import type { Held } from '../../../shared/infra/redis/requests/running-request.ts';
import type { Bound } from '../stage.ts';

/** What the hold of a request depends on, from its start to its end. */
export interface HoldTerms {
  rates: Rates;
  /** The longest answer a provider is asked for. */
  maxTokens: number;
}

/** How many tokens of the answer the held credits pay for. Negative: they do not even pay for the prompt. */
function paidTokens({ rates }: HoldTerms, held: Held, promptTokens: number): number {
  const left = held.micro - priceUsage({ promptTokens, completionTokens: 0 }, rates);
  if (rates.completionMicro > 0) return Math.floor(left / rates.completionMicro);
  return left >= 0 ? Infinity : 0;
}

/** How many tokens of the answer the hold covers; Infinity: the longest answer. */
export function grantedTokens(terms: HoldTerms, held: Held, promptTokens: number): number {
  const least = Math.min(paidTokens(terms, held, promptTokens), held.tokens - promptTokens);
  // No provider sends more than it was asked for, whatever our estimate says.
  return least >= terms.maxTokens ? Infinity : Math.max(0, least);
}

/** Which bound ends an answer that needs more than is granted. */
export function boundReached(terms: HoldTerms, held: Held, promptTokens: number): Bound {
  if (paidTokens(terms, held, promptTokens) <= held.tokens - promptTokens) return 'credits';
  const isTest = held.micro === Infinity;
  return isTest ? 'allowance' : 'budget';
}

/** The part of a usage that a hold pays for: the answer is cut before the prompt. */
export function paidPart({ rates }: HoldTerms, held: Held, usage: Usage): Usage {
  if (priceUsage(usage, rates) <= held.micro && usage.promptTokens + usage.completionTokens <= held.tokens)
    return usage;
  const covered = (tokens: number, rate: number, micro: number, most: number) =>
    Math.max(0, Math.min(tokens, most, rate > 0 ? Math.floor(micro / rate) : Infinity));
  const promptTokens = covered(usage.promptTokens, rates.promptMicro, held.micro, held.tokens);
  const left = held.micro - promptTokens * rates.promptMicro;
  const completionTokens = covered(usage.completionTokens, rates.completionMicro, left, held.tokens - promptTokens);
  return { promptTokens, completionTokens, estimated: true };
}

/** What a request with an answer of this length has to hold; lengths beyond `maxTokens` count as `maxTokens`. */
export function holdFor({ rates, maxTokens }: HoldTerms, promptTokens: number, completionTokens: number): Held {
  const completion = Math.min(maxTokens, completionTokens);
  return {
    micro: priceUsage({ promptTokens, completionTokens: completion }, rates),
    tokens: promptTokens + completion,
  };
}
