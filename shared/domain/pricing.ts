import { KIND_NAMES, TOKEN_KINDS } from '../contracts/events.ts';
import type { Usage } from '../contracts/events.ts';
import type { Rates, TargetCost } from './routing.ts';

/** Stripe takes at most eight digits. */
export const AMOUNT_MAX = 99_999_999;

/** Cards are not charged to the last minor unit of these. Stripe refuses other amounts. */
const STEPS: Readonly<Record<string, number>> = { bhd: 10, jod: 10, kwd: 10, omr: 10, tnd: 10, isk: 100, ugx: 100 };

/** Amounts of a currency (ISO 4217, lower case) are multiples of this many minor units. */
export function amountStepOf(currency: string): number {
  return STEPS[currency] ?? 1;
}

/** `amount` is in minor units of `currency` (ISO 4217, lower case). */
export function isPayable(amount: number, currency: string): boolean {
  return amount <= AMOUNT_MAX && amount % amountStepOf(currency) === 0;
}

const MICRO_PER_MILLION = 1_000_000_000_000n;

/** In minor units of `currency`, rounded up to whole steps. */
export function priceOf(creditsMicro: number, pricePerMillion: number, currency: string): number {
  const step = BigInt(amountStepOf(currency));
  const exact = BigInt(creditsMicro) * BigInt(pricePerMillion);
  const unit = MICRO_PER_MILLION * step;
  return Number(((exact + unit - 1n) / unit) * step);
}

/** Micro-credits to take back once `refundedAmount` was paid back; a full refund takes all. */
export function refundOf(
  { creditsMicro, amount }: { creditsMicro: number; amount: number },
  refundedAmount: number,
): number {
  const part = BigInt(Math.min(Math.max(refundedAmount, 0), amount));
  return Number((BigInt(creditsMicro) * part) / BigInt(amount));
}

/** Minor units of a currency (ISO 4217, lower case) in the currency itself. */
export function toMajor(minorUnits: number, currency: string): number {
  const { maximumFractionDigits = 2 } = new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions();
  return minorUnits / 10 ** maximumFractionDigits;
}

/** 1 credit is one token at rate 1; amounts are integers of micro-credits (docs/spec.md#price). */
const MICRO_PER_CREDIT = 1_000_000;

/** Needs no tokenizer: a token of English text is about four bytes. */
export const BYTES_PER_TOKEN = 4;

/**
 * Token windows count vectors as tokens: a token of a streamed answer takes as many bytes in Redis. By its inputs'
 * tokens alone, a default key could fill a Redis of 2 GB within four minutes.
 */
export const vectorTokens = (bytes: number) => Math.ceil(bytes / 128);

/** Micro-credits. Rates are whole micro-credits per token, so no fraction is lost. */
export function priceUsage(usage: Usage, { promptMicro, completionMicro, kinds }: Rates): number {
  let price = usage.promptTokens * promptMicro + usage.completionTokens * completionMicro;
  if (kinds === undefined) return price;
  for (const name of KIND_NAMES) {
    const ordinary = TOKEN_KINDS[name][0] === 'prompt' ? promptMicro : completionMicro;
    price += (usage[name] ?? 0) * ((kinds[name] ?? ordinary) - ordinary);
  }
  return price;
}

/** Credits are held before anybody knows the kinds of tokens, so the dearest rate counts. */
export function holdRates(rates: Rates): Rates {
  const { promptMicro, completionMicro, kinds } = rates;
  if (kinds === undefined) return rates;
  const dearest = (of: 'prompt' | 'completion', ordinary: number) =>
    Math.max(ordinary, ...KIND_NAMES.map((name) => (TOKEN_KINDS[name][0] === of ? (kinds[name] ?? 0) : 0)));
  return { promptMicro: dearest('prompt', promptMicro), completionMicro: dearest('completion', completionMicro) };
}

/** In billionths of the cost's currency; rounded, once a call. */
export function spendOf(usage: Usage, cost: TargetCost): number {
  return Math.round(priceUsage(usage, cost) / 1_000);
}

/** Credits have at most six decimals; rounding removes the floating-point error. */
export function toMicro(credits: number): number {
  return Math.round(credits * MICRO_PER_CREDIT);
}

/** Micro-credits as credits, for the wire only: amounts stay in micro-credits while they are added up. */
export function toCredits(micro: number): number {
  return micro / MICRO_PER_CREDIT;
}

/** `202611`: the month (UTC) of a time in milliseconds, by which budgets are counted. */
export function monthOf(timeMs: number): string {
  const date = new Date(timeMs);
  return `${date.getUTCFullYear()}${String(date.getUTCMonth() + 1).padStart(2, '0')}`;
}

/** `20261121`: the day (UTC), by which the allowance of test keys is counted. */
export function dayOf(timeMs: number): string {
  return `${monthOf(timeMs)}${String(new Date(timeMs).getUTCDate()).padStart(2, '0')}`;
}
