import Joi from 'joi';

import { creditsSchema } from '../../contract/credits.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { AMOUNT_MAX, toMicro } from '../../../shared/domain/pricing/pricing.ts';
import type { NewPriceList } from '../../../shared/infra/mongo/accounts/price-repository.ts';

const PACKAGES_MAX = 100;
const NAME_CHARACTERS_MAX = 200;
/** The last second of the year 9999. */
const TIME_MAX = 253_402_300_799;

const amount = () => Joi.number().integer().min(1).max(AMOUNT_MAX).required();

const packageSchema = Joi.object({
  id: Joi.string()
    .pattern(/^[a-z0-9][a-z0-9_-]{0,63}$/)
    .required(),
  name: Joi.string().max(NAME_CHARACTERS_MAX).required(),
  credits: creditsSchema.min(1).required(),
  amount: amount().description("In the currency's minor unit."),
  expires_at: Joi.number().integer().min(0).max(TIME_MAX).allow(null),
});

/** `PUT /admin/v1/packages`. */
const priceListSchema = Joi.object({
  currency: Joi.string()
    .pattern(/^[a-z]{3}$/)
    .required()
    .description('ISO 4217, lower case.'),
  price_per_million_credits: amount().allow(null).description('For free amounts; null: only packages are sold.'),
  packages: Joi.array().items(packageSchema).unique('id').max(PACKAGES_MAX).required(),
}).required();

interface PriceListBody {
  currency: string;
  price_per_million_credits: number | null;
  packages: { id: string; name: string; credits: number; amount: number; expires_at?: number | null }[];
}

/** Throws `invalid_request`. */
export function parsePriceList(input: unknown): NewPriceList {
  checkAgainst(priceListSchema, input);
  // The schema has just checked every field of this shape.
  const { currency, price_per_million_credits: pricePerMillion, packages } = input as PriceListBody;
  return {
    currency,
    pricePerMillion,
    packages: packages.map(({ id, name, credits, amount, expires_at: expiresAt }) => ({
      ...{ id, name, amount, creditsMicro: toMicro(credits) },
      ...(expiresAt === undefined || expiresAt === null ? {} : { expiresAt: expiresAt * 1000 }),
    })),
  };
}
