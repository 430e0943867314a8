/** Stripe takes at most eight digits. */
export const AMOUNT_MAX = 99_999_999;

const MICRO_PER_MILLION = 1_000_000_000_000n;

/** What a free amount of credits costs in minor units, a begun unit being a whole one. */
export function priceOf(creditsMicro: number, pricePerMillion: number): number {
  const exact = BigInt(creditsMicro) * BigInt(pricePerMillion);
  return Number((exact + MICRO_PER_MILLION - 1n) / MICRO_PER_MILLION);
}

/** Micro-credits that are taken back when so much of a purchase has been paid back; all of them when all was. */
export function refundOf(
  { creditsMicro, amount }: { creditsMicro: number; amount: number },
  refundedAmount: number,
): number {
  const part = BigInt(Math.min(Math.max(refundedAmount, 0), amount));
  return Number((BigInt(creditsMicro) * part) / BigInt(amount));
}
