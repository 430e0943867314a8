import { AMOUNT_MAX, priceOf, toMicro } from '../../../shared/domain/pricing/pricing.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Order } from '../../../shared/infra/mongo/accounts/checkout-repository.ts';
import type { PriceList } from '../../../shared/infra/mongo/accounts/price-repository.ts';
import type { NewCheckout } from './schema.ts';

function refuse(param: string, message: string): never {
  throw new ServiceError('invalid_request', message, { param });
}

function orderPackage({ packages, currency }: PriceList, packageId: string, now: number): Order {
  const wanted = packages.find(({ id }) => id === packageId);
  if (wanted === undefined) {
    throw new ServiceError('not_found', 'There is no package with this id; see GET /billing/packages.', {
      param: 'package_id',
    });
  }
  if (wanted.expiresAt !== undefined && wanted.expiresAt <= now) {
    refuse('package_id', 'This package is not sold any more; see GET /billing/packages.');
  }
  return { packageId, creditsMicro: wanted.creditsMicro, amount: wanted.amount, currency };
}

function orderCredits({ pricePerMillion, currency }: PriceList, credits: number): Order {
  if (pricePerMillion === null) refuse('credits', 'Credits are sold in packages only; send a `package_id`.');
  const creditsMicro = toMicro(credits);
  const amount = priceOf(creditsMicro, pricePerMillion);
  if (amount > AMOUNT_MAX) {
    refuse('credits', `\`credits\` must cost at most ${AMOUNT_MAX} minor units of ${currency}.`);
  }
  return { creditsMicro, amount, currency };
}

/** What a checkout buys, at the price of this moment. Throws a ServiceError. */
export function toOrder(prices: PriceList, { packageId, credits }: NewCheckout, now: number): Order {
  if (packageId !== undefined) return orderPackage(prices, packageId, now);
  return orderCredits(prices, credits ?? 0);
}
