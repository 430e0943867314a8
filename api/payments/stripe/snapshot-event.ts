import Joi from 'joi';
import type Stripe from 'stripe';

const amount = Joi.number().integer().min(0).required();
const text = Joi.string().required();

const refund = Joi.object({ amount_refunded: amount });
const dispute = Joi.object({ id: text, amount, currency: text });

/** The fields that a reversal needs. A payment that lacks a field matches no checkout: payment-mismatch.ts. */
const OBJECTS: ReadonlyMap<string, Joi.ObjectSchema> = new Map([
  ['charge.refunded', refund],
  ['charge.dispute.funds_withdrawn', dispute],
  ['charge.dispute.funds_reinstated', dispute],
]);

function schemaOf(object: Joi.ObjectSchema): Joi.ObjectSchema {
  const data = Joi.object({ object: object.required() }).required();
  return Joi.object({ id: text, type: text, data }).required().prefs({ allowUnknown: true, convert: false });
}

const ANY = schemaOf(Joi.object());
const SCHEMAS = new Map([...OBJECTS].map(([type, object]) => [type, schemaOf(object)]));

/**
 * Whether a value signed by Stripe is an event that contains its object, including the amounts needed for reversals.
 * Thin events contain no object, and other versions of Stripe's API may omit fields.
 */
export function isSnapshotEvent(value: Stripe.Event | null): value is Stripe.Event {
  const schema = SCHEMAS.get(String(value?.type)) ?? ANY;
  return schema.validate(value).error === undefined;
}
