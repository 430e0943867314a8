import Joi from 'joi';

import { codePoints } from '../../../shared/contracts/chat-request.ts';
import { creditsSchema } from '../../contract/credits.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import type { LedgerType } from '../../../shared/infra/mongo/accounts/ledger-repository.ts';

const URL_CHARACTERS_MAX = 2_048;

/** Printable ASCII only: it is sent in a header. */
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

/** `POST /billing/checkout`. */
export const checkoutSchema = Joi.object({
  package_id: Joi.string()
    .custom(codePoints(64))
    .description('A package of `GET /billing/packages`; or name `credits`.'),
  credits: creditsSchema.min(1).description('A free amount of credits; or name `package_id`.'),
  success_url: urlSchema.description('Where the buyer goes after paying.'),
  cancel_url: urlSchema.description('Where the buyer goes without paying.'),
})
  .xor('package_id', 'credits')
  .required();

export interface NewCheckout {
  packageId: string | undefined;
  credits: number | undefined;
  successUrl: string;
  cancelUrl: string;
}

interface CheckoutBody {
  package_id?: string;
  credits?: number;
  success_url: string;
  cancel_url: string;
}

/** Throws `invalid_request`. */
export function parseCheckout(input: unknown): NewCheckout {
  checkAgainst(checkoutSchema, input);
  // The schema has just checked every field of this shape.
  const { package_id: packageId, credits, success_url: successUrl, cancel_url: cancelUrl } = input as CheckoutBody;
  return { packageId, credits, successUrl, cancelUrl };
}

export const TRANSACTION_TYPES: readonly LedgerType[] = ['purchase', 'grant', 'usage', 'adjustment'];

/** `GET /billing/transactions`, beside the parameters of every list. */
export const transactionsQuerySchema = Joi.object({
  type: Joi.string()
    .valid(...TRANSACTION_TYPES)
    .description('Entries of this type only.'),
}).unknown();

/** `?type=` of `GET /billing/transactions`; throws `invalid_request`. */
export function parseTransactionType(query: Readonly<Record<string, unknown>>): LedgerType | undefined {
  checkAgainst(transactionsQuerySchema, query);
  // The schema has just checked it.
  return query['type'] as LedgerType | undefined;
}
