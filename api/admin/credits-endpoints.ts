import Joi from 'joi';

import { toCredits, toMicro } from '../../shared/domain/pricing.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { AccountRepository, LedgerBalance } from '../../shared/mongo/accounts/account-repository.ts';
import type { LedgerRow } from '../../shared/mongo/accounts/ledger-repository.ts';
import type { TenantPlace, TenantRepository } from '../../shared/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../shared/redis/stores/account-store.ts';
import { BALANCE_MICRO_MAX, readBalance } from '../resources/billing/billing-status.ts';
import { storedText } from '../../shared/contracts/chat-request.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { derivedId } from '../../shared/lifecycle/ids.ts';
import { idempotencyKeyOf } from '../http/request-terms.ts';
import { created, defineAdminEndpoint, json, jsonBody } from '../contract/endpoint.ts';
import {
  constant,
  id,
  named,
  number,
  object,
  oneOf,
  text,
  time,
  toSeconds,
  creditsSchema,
} from '../contract/json-schema.ts';
import type { FieldsOf } from '../contract/json-schema.ts';
import type { TenantEvents } from '../contract/tenant-events.ts';
import { findTenant } from '../resources/keys/key-changes.ts';

interface BookCreditsDeps {
  tenants: TenantRepository;
  accounts: AccountRepository;
  accountStore: AccountStore;
  log: Logger;
}

interface Booking {
  type: 'grant' | 'adjustment';
  /** Signed micro-credits. */
  amountMicro: number;
  reason: string;
  /** Calls with the same id book only once. */
  transactionId?: string;
}

/**
 * Books an amount and writes the new book to Redis. Only a call with a `transactionId` is safe to repeat, so every step
 * that can fail comes before the booking, and a failure after it does not ask the caller to try again.
 */
async function bookCredits(
  deps: BookCreditsDeps,
  { _id: tenantId, shard }: TenantPlace,
  booking: Booking,
  now: number,
): Promise<{ entry: LedgerRow; isRepeated: boolean }> {
  async function publish(book: LedgerBalance): Promise<void> {
    try {
      // Read after the booking: a tenant being moved needs its balance on the shard where it ends up.
      const tenant = await findTenant(deps.tenants, tenantId);
      await deps.accountStore.publishBalance(tenant.shard, tenantId, book);
    } catch (error) {
      deps.log.error('Credits are booked but Redis does not know them yet; npm run reconcile repairs it.', {
        tenantId,
        shard,
        error,
      });
    }
  }

  const { transactionId } = booking;
  const before = transactionId === undefined ? undefined : await deps.accounts.booked(tenantId, transactionId);
  if (before !== undefined) {
    await publish(before.book);
    return { entry: before.entry, isRepeated: true };
  }
  const { balanceMicro } = await readBalance(deps, { _id: tenantId, shard }, now);
  if (Math.abs(balanceMicro + booking.amountMicro) > BALANCE_MICRO_MAX) {
    throw new ServiceError(
      'invalid_request',
      `\`credits\` must leave a balance between ${-toCredits(BALANCE_MICRO_MAX)} and ${toCredits(BALANCE_MICRO_MAX)}.`,
      { param: 'credits' },
    );
  }
  const booked = await deps.accounts.book({ tenantId, ...booking, now });
  await publish(booked.book);
  return { entry: booked.entry, isRepeated: false };
}

const REASON_CHARACTERS_MAX = 500;

const notZero: Joi.CustomValidator<number> = (value, helpers) =>
  value === 0 ? helpers.message({ custom: '{{#label}} must not be 0' }) : value;

const newCreditsSchema = Joi.object<{ credits: number; reason?: string }, true>({
  credits: creditsSchema
    .custom(notZero)
    .meta({ rule: 'At most six decimals, and not 0.' })
    .required()
    .description('A grant, or with a negative amount an adjustment.'),
  reason: storedText(REASON_CHARACTERS_MAX).allow('').description('Shown to the tenant.'),
}).required();

const fields = {
  id: id('txn'),
  object: constant('transaction'),
  created_at: time('Time of the booking'),
  type: oneOf(['grant', 'adjustment']),
  credits: number(),
  balance_after: number(),
  reason: text(),
};

export interface CreditsDeps extends BookCreditsDeps {
  tenants: TenantRepository;
  events: TenantEvents;
  clock: Clock;
}

const grantCredits = defineAdminEndpoint({
  method: 'POST',
  path: '/tenants/:tenantId/credits',
  tag: 'Credits',
  summary: 'Grant or adjust credits',
  description: 'With an `Idempotency-Key` the call is safe to repeat: it books once, however late it is repeated.',
  headers: ['Idempotency-Key'],
  body: jsonBody('NewCredits', newCreditsSchema),
  answers: { 201: json('The transaction.', named('CreditTransaction', object(fields)), ['Idempotent-Replayed']) },
  errors: ['idempotency_mismatch'],
  examples: {
    grant: {
      body: { credits: 250_000, reason: 'Pilot' },
      status: 201,
      answer: {
        id: 'txn_4fK2mZ8sQ1xY7bN3vC6tR9wE',
        object: 'transaction',
        created_at: 1_795_255_200,
        type: 'grant',
        credits: 250_000,
        balance_after: 500_000,
        reason: 'Pilot',
      },
    },
  },
  async handle({ req, res, params, body, actorIn }, deps: CreditsDeps) {
    const { credits, reason = '' } = body;
    const { _id: tenantId, shard } = await findTenant(deps.tenants, params.tenantId);
    const key = idempotencyKeyOf(req);
    const booking: Booking = {
      type: credits > 0 ? 'grant' : 'adjustment',
      amountMicro: toMicro(credits),
      reason,
      ...(key === undefined ? {} : { transactionId: derivedId('txn', tenantId, 'admin-credits', key) }),
    };
    const { entry, isRepeated } = await bookCredits(deps, { _id: tenantId, shard }, booking, deps.clock.now());
    const { _id: transactionId, balanceAfterMicro, createdAt } = entry;
    if (entry.amountMicro !== booking.amountMicro || entry.reason !== reason) {
      throw new ServiceError('idempotency_mismatch', 'This Idempotency-Key has booked other credits; send a new key.');
    }
    if (isRepeated) res.setHeader('Idempotent-Replayed', 'true');
    const event = booking.type === 'grant' ? 'credits.granted' : 'credits.adjusted';
    await deps.events.emit(actorIn(tenantId), event, transactionId, { credits, reason });
    return created({
      id: transactionId,
      object: 'transaction',
      created_at: toSeconds(createdAt),
      type: booking.type,
      credits,
      balance_after: toCredits(balanceAfterMicro),
      reason,
    } satisfies FieldsOf<typeof fields>);
  },
});

/** Credits of any tenant (docs/spec.md#administration). */
export const creditsEndpoints = { grantCredits };
