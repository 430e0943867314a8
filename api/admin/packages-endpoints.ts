import Joi from 'joi';

import { AMOUNT_MAX, amountStepOf, toMicro } from '../../shared/domain/pricing.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { NewPriceList, PriceList, PriceRepository } from '../../shared/mongo/accounts/price-repository.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { defineAdminEndpoint, ok, json, jsonBody } from '../contract/endpoint.ts';
import {
  constant,
  integer,
  listOf,
  named,
  nullable,
  object,
  text,
  time,
  toSecondsOrNull,
  countSchema,
  creditsSchema,
  unixSecondsSchema,
} from '../contract/json-schema.ts';
import type { FieldsOf } from '../contract/json-schema.ts';
import { packageResource } from '../resources/billing/billing-resource.ts';
import { currencySchema } from './tiers/tiers-endpoints.ts';

export interface PackagesDeps {
  prices: PriceRepository;
  clock: Clock;
}

const PACKAGES_MAX = 100;
const NAME_CHARACTERS_MAX = 200;

const amountSchema = countSchema(1, AMOUNT_MAX).required();

interface PackageBody {
  id: string;
  name: string;
  credits: number;
  amount: number;
  expires_at?: number | null;
}

const packageBodySchema = Joi.object<PackageBody, true>({
  id: Joi.string()
    .pattern(/^[a-z0-9][a-z0-9_-]{0,63}$/)
    .required(),
  name: Joi.string().max(NAME_CHARACTERS_MAX).required(),
  credits: creditsSchema.min(1).required(),
  amount: amountSchema.description(
    "In the currency's minor unit; a multiple of 10 in bhd, jod, kwd, omr and tnd, of 100 in isk and ugx.",
  ),
  expires_at: unixSecondsSchema(0).allow(null).description('Time from which it is no longer sold, in Unix seconds.'),
});

interface PriceListBody {
  currency: string;
  price_per_million_credits: number | null;
  packages: PackageBody[];
}

const priceListBodySchema = Joi.object<PriceListBody, true>({
  currency: currencySchema.required().description('ISO 4217, lower case.'),
  price_per_million_credits: amountSchema.allow(null).description('For free amounts; null: only packages are sold.'),
  packages: Joi.array()
    .items(packageBodySchema)
    .unique('id')
    .max(PACKAGES_MAX)
    .messages({ 'array.unique': '{{#label}} must have another `id` than the packages before it' })
    .required(),
}).required();

/** Without this check, a package could be on sale that cannot be paid for. */
function assertPayable({ currency, packages }: PriceListBody): void {
  const step = amountStepOf(currency);
  const wrong = packages.findIndex(({ amount }) => amount % step !== 0);
  if (wrong === -1) return;
  throw new ServiceError(
    'invalid_request',
    `\`packages[${wrong}].amount\` must be a multiple of ${step}: cards are not charged smaller amounts of ${currency}.`,
    { param: `packages[${wrong}].amount` },
  );
}

function toPriceList({ currency, price_per_million_credits, packages }: PriceListBody): NewPriceList {
  return {
    currency,
    pricePerMillion: price_per_million_credits,
    packages: packages.map(({ id, name, credits, amount, expires_at: expiresAt }) => ({
      id,
      name,
      amount,
      creditsMicro: toMicro(credits),
      ...(expiresAt === undefined || expiresAt === null ? {} : { expiresAt: expiresAt * 1000 }),
    })),
  };
}

const fields = {
  object: constant('price_list'),
  currency: text('ISO 4217, lower case.'),
  price_per_million_credits: nullable(integer('Of free amounts, in minor units; null: only packages are sold.', 0)),
  packages: listOf(packageResource.schema, 'Packages that are no longer sold included.'),
  updated_at: nullable(time('Time of the latest change')),
};
const priceListSchema = named('PriceList', object(fields));

function toPriceListResource({ currency, pricePerMillion, packages, updatedAt }: PriceList) {
  return {
    object: 'price_list',
    currency,
    price_per_million_credits: pricePerMillion,
    packages: packages.map((row) => packageResource.of(row, currency)),
    updated_at: toSecondsOrNull(updatedAt),
  } satisfies FieldsOf<typeof fields>;
}

const EXAMPLE: ReturnType<typeof toPriceListResource> = {
  object: 'price_list',
  currency: 'usd',
  price_per_million_credits: 500,
  packages: [packageResource.example],
  updated_at: 1_795_255_200,
};

const getPackages = defineAdminEndpoint({
  method: 'GET',
  path: '/packages',
  tag: 'Packages',
  summary: 'Retrieve the price list',
  answers: { 200: json('The price list.', priceListSchema) },
  examples: { current: { status: 200, answer: EXAMPLE } },
  async handle(_call, { prices }: PackagesDeps) {
    return ok(toPriceListResource(await prices.current()));
  },
});

const putPackages = defineAdminEndpoint({
  method: 'PUT',
  path: '/packages',
  tag: 'Packages',
  summary: 'Replace the price list',
  description: 'The whole list at once. A checkout keeps the price at which it was created.',
  body: jsonBody('NewPriceList', priceListBodySchema),
  answers: { 200: json('The price list.', priceListSchema) },
  examples: {
    starter: {
      body: {
        currency: 'usd',
        price_per_million_credits: 500,
        packages: [{ id: 'starter', name: 'Starter', credits: 1_000_000, amount: 500 }],
      },
      status: 200,
      answer: EXAMPLE,
    },
  },
  async handle({ body }, { prices, clock }: PackagesDeps) {
    assertPayable(body);
    return ok(toPriceListResource(await prices.put(toPriceList(body), clock.now())));
  },
});

/** Credit packages and their prices (docs/spec.md#administration). */
export const packagesEndpoints = { getPackages, putPackages };
