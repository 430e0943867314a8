import type { Request } from 'express';
import Joi from 'joi';

import { textUpTo } from '../../../shared/contracts/chat-request.ts';
import { AMOUNT_MAX, isPayable, priceOf, toCredits, toMicro } from '../../../shared/domain/pricing.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { CheckoutRepository, CheckoutRow, Order } from '../../../shared/mongo/accounts/checkout-repository.ts';
import type { PriceList, PriceRepository } from '../../../shared/mongo/accounts/price-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { created, defineEndpoint, json, jsonBody } from '../../contract/endpoint.ts';
import { creditsSchema } from '../../contract/json-schema.ts';
import type { Actor, TenantEvents } from '../../contract/tenant-events.ts';
import type { Payment } from '../../payments/payment.ts';
import { checkoutResource, ORDER_EXAMPLE } from './billing-resource.ts';
import { readBalance, BALANCE_MICRO_MAX } from './billing-status.ts';
import type { BalanceDeps } from './billing-status.ts';
import { createdBefore, idForNew } from '../../http/request-context.ts';

/** The lifetime of a Stripe session. */
const OPEN_MS = 24 * 3_600_000;
/** Payment methods may take two weeks, and their notices are sent again for three days. */
const UNPAID_KEPT_MS = 30 * OPEN_MS;

interface Buyer {
  tenantId: string;
  keyId: string;
  balanceMicro: number;
  /** The scheme and host by which the caller reaches this service. */
  origin: string;
}

interface NewCheckout {
  checkoutId: string;
  order: Order;
  urls: { successUrl: string; cancelUrl: string };
  buyer: Buyer;
}

/** Refuses a purchase, before payment, if the balance would no longer be an exact number. */
function assertRoomFor({ creditsMicro, packageId }: Order, { balanceMicro }: Buyer): void {
  if (balanceMicro + creditsMicro <= BALANCE_MICRO_MAX) return;
  throw new ServiceError('invalid_request', `The balance must not exceed ${toCredits(BALANCE_MICRO_MAX)} credits.`, {
    param: packageId === undefined ? 'credits' : 'package_id',
  });
}

/** Stores a checkout before opening it, so that a payment notice always finds it; `failed`: it was not opened. */
async function openCheckout(
  { checkouts, payment }: { checkouts: CheckoutRepository; payment: Payment },
  { checkoutId, order, urls, buyer }: NewCheckout,
  now: number,
): Promise<CheckoutRow> {
  const { tenantId, keyId, origin } = buyer;
  const row: CheckoutRow = {
    _id: checkoutId,
    tenantId,
    keyId,
    ...urls,
    ...order,
    status: 'open',
    payment: payment.name,
    createdAt: now,
    expiresAt: now + OPEN_MS,
    removeAt: new Date(now + OPEN_MS + UNPAID_KEPT_MS),
  };
  await checkouts.insert(row);
  return letPay({ checkouts, payment }, row, origin);
}

/** Opens a stored checkout with the payment, once; a repeated call opens one whose first answer was lost. */
async function letPay(
  { checkouts, payment }: { checkouts: CheckoutRepository; payment: Payment },
  row: CheckoutRow,
  origin: string,
): Promise<CheckoutRow> {
  if (row.url !== undefined) return row;
  try {
    const opened = await payment.open(row, origin);
    await checkouts.opened(row._id, opened);
    return { ...row, ...opened, status: row.status === 'failed' ? 'open' : row.status };
  } catch (error) {
    await checkouts.failed(row._id).catch(() => undefined);
    throw error;
  }
}

const URL_CHARACTERS_MAX = 2_048;

/** Printable ASCII only, because it is sent in a header. */
const URL_CHARACTERS = /^[\x21-\x7e]+$/;

const pageUrl: Joi.CustomValidator<string> = (value, helpers) => {
  const url = URL_CHARACTERS.test(value) ? URL.parse(value) : null;
  const isPage = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  return isPage ? value : helpers.message({ custom: '{{#label}} must be an http or https URL without credentials' });
};
const urlSchema = Joi.string()
  .max(URL_CHARACTERS_MAX)
  .custom(pageUrl)
  .meta({ format: 'uri', rule: 'An http or https URL in ASCII, without a user name or password.' })
  .required();

/** Exactly one of `package_id` and `credits`. */
interface CheckoutBody {
  package_id?: string;
  credits?: number;
  success_url: string;
  cancel_url: string;
}

const bodySchema = Joi.object<CheckoutBody, true>({
  package_id: textUpTo(64).description('A package of `GET /billing/packages`; or name `credits`.'),
  credits: creditsSchema.min(1).description('A free amount of credits; or name `package_id`.'),
  success_url: urlSchema.description('Where the buyer goes after paying.'),
  cancel_url: urlSchema.description('Where the buyer goes without paying.'),
})
  .xor('package_id', 'credits')
  .messages({
    'object.missing': '{{#label}} must have `package_id` or `credits`',
    'object.xor': '{{#label}} must have one of `package_id` and `credits`, not both',
  })
  .required();

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
  if (!isPayable(wanted.amount, currency)) {
    refuse(
      'package_id',
      `Cards cannot be charged the price of this package, ${wanted.amount} minor units of ${currency}; choose another one, or ask the administrator to set its price again.`,
    );
  }
  return { packageId, creditsMicro: wanted.creditsMicro, amount: wanted.amount, currency };
}

function orderCredits({ pricePerMillion, currency }: PriceList, credits: number): Order {
  if (pricePerMillion === null) refuse('credits', 'Credits are sold in packages only; send a `package_id`.');
  const creditsMicro = toMicro(credits);
  const amount = priceOf(creditsMicro, pricePerMillion, currency);
  if (amount > AMOUNT_MAX) {
    refuse('credits', `\`credits\` must cost at most ${AMOUNT_MAX} minor units of ${currency}.`);
  }
  return { creditsMicro, amount, currency };
}

/** The order of a checkout, at the current price. Throws a ServiceError. */
function toOrder(prices: PriceList, { package_id: packageId, credits }: CheckoutBody, now: number): Order {
  if (packageId !== undefined) return orderPackage(prices, packageId, now);
  return orderCredits(prices, credits ?? 0);
}

export interface CreateCheckoutDeps extends BalanceDeps {
  checkouts: CheckoutRepository;
  prices: PriceRepository;
  /** Undefined: nothing is sold here. */
  payment: Payment | undefined;
  events: TenantEvents;
  clock: Clock;
}

/** Express believes only a trusted proxy's headers. */
function originOf(req: Request): string {
  return `${req.protocol}://${req.host}`;
}

async function emitCreated({ events }: CreateCheckoutDeps, actor: Actor, checkout: CheckoutRow): Promise<void> {
  const { _id: checkoutId, creditsMicro, amount, currency } = checkout;
  await events.emit(actor, 'checkout.created', checkoutId, { credits: toCredits(creditsMicro), amount, currency });
}

/** Purchases are always live, so test keys see none of them (docs/spec.md#test-keys). */
export function mayBuy({ mode }: Principal): boolean {
  return mode === 'live';
}

/** Each opens a session in the operator's one account of the payment, whose limit all tenants share. */
const CHECKOUTS_PER_MINUTE = 10;

export const createCheckout = defineEndpoint({
  method: 'POST',
  path: '/billing/checkout',
  scopes: ['billing'],
  ownLimit: { perMinute: CHECKOUTS_PER_MINUTE, of: 'tenant' },
  tag: 'Billing',
  summary: 'Create a checkout',
  description: `The buyer pays at \`url\`. A service that takes no payments answers 409. A test key cannot create a checkout (403). An account may call this ${CHECKOUTS_PER_MINUTE} times a minute; a checkout that is not paid is kept for 31 days.`,
  body: jsonBody('NewCheckout', bodySchema),
  answers: { 201: json('The checkout.', checkoutResource.schema) },
  errors: ['not_found'],
  examples: {
    credits: { summary: 'A free amount', body: ORDER_EXAMPLE, status: 201, answer: checkoutResource.example },
  },
  async handle({ req, res, principal, body, actor }, deps: CreateCheckoutDeps) {
    const { checkouts, payment, prices, clock } = deps;
    if (!mayBuy(principal)) {
      throw new ServiceError('endpoint_not_allowed', 'A test key cannot buy credits; call with a live key.');
    }
    if (payment === undefined) {
      throw new ServiceError('conflict', 'This service takes no payments; ask its administrator for credits.');
    }
    const { tenantId, keyId, shard } = principal;
    const now = clock.now();
    const checkoutId = idForNew(res, 'cs');
    const before = await createdBefore(res, () => checkouts.find(tenantId, checkoutId));
    if (before !== undefined) {
      const checkout = await letPay({ checkouts, payment }, before, originOf(req));
      await emitCreated(deps, actor, checkout);
      return created(checkoutResource.of(checkout, now));
    }
    const order = toOrder(await prices.current(), body, now);
    const { balanceMicro } = await readBalance(deps, { _id: tenantId, shard }, now);
    const buyer = { tenantId, keyId, balanceMicro, origin: originOf(req) };
    assertRoomFor(order, buyer);
    const urls = { successUrl: body.success_url, cancelUrl: body.cancel_url };
    const checkout = await openCheckout({ checkouts, payment }, { checkoutId, order, urls, buyer }, now);
    await emitCreated(deps, actor, checkout);
    return created(checkoutResource.of(checkout, now));
  },
});
