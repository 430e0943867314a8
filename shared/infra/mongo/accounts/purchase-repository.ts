import { Schema } from 'mongoose';
import type { ClientSession, Connection } from 'mongoose';

import type { ListQuery } from '../../../contracts/list-page.ts';
import { mismatchOf } from '../../../domain/billing/payment-mismatch.ts';
import type { PaidSession, PaymentMismatch } from '../../../domain/billing/payment-mismatch.ts';
import { reverse } from '../../../domain/billing/reversal.ts';
import type { Dispute, Reversal } from '../../../domain/billing/reversal.ts';
import { toCredits } from '../../../domain/pricing/pricing.ts';
import { derivedId, newId } from '../../../lifecycle/ids.ts';
import { collection, count, number, options, required, text } from '../collection.ts';
import { listRows } from '../list-rows.ts';
import { auditModel } from '../tenants/audit-repository.ts';
import { accountModel, moveAccount, toBook } from './account-repository.ts';
import type { Book } from './account-repository.ts';
import { checkoutModel, orderFields } from './checkout-repository.ts';
import type { CheckoutRow, CheckoutStatus, Order, PaymentName } from './checkout-repository.ts';
import { ledgerModel } from './ledger-repository.ts';
import type { LedgerRow } from './ledger-repository.ts';
import { createOnce } from './payment-notices.ts';
import type { PaymentNotice } from './payment-notices.ts';

export interface PurchaseRow extends Order {
  _id: string;
  tenantId: string;
  checkoutId: string;
  transactionId: string;
  payment: PaymentName;
  /** The payment's own id of what was paid; refunds name it. */
  paymentId?: string;
  /** What was paid back, and the credits that were taken back for it. */
  refundedAmount: number;
  refundedMicro: number;
  /** What was disputed, and the credits that are taken back for it beyond the refunds; absent: never. */
  disputes?: Dispute[];
  disputedMicro?: number;
  createdAt: number;
}

const dispute = new Schema<Dispute>(
  { id: required, amount: count, withdrawals: count, reinstatements: count },
  { _id: false, id: false },
);

const purchaseSchema = new Schema<PurchaseRow>(
  {
    _id: required,
    tenantId: required,
    checkoutId: required,
    transactionId: required,
    payment: required,
    paymentId: text,
    ...orderFields,
    refundedAmount: count,
    refundedMicro: count,
    disputes: { type: [dispute], default: undefined },
    disputedMicro: number,
    createdAt: count,
  },
  options,
)
  .index({ tenantId: 1, createdAt: -1 })
  .index({ paymentId: 1 });

export const purchaseModel = collection<PurchaseRow>('Purchase', 'purchases', purchaseSchema);

export interface PaidCheckout {
  checkoutId: string;
  paymentId?: string;
  /** Only a checkout that is still open and not over can be paid; without it, money that came is money that counts. */
  onlyOpen?: boolean;
  /** What has to agree with the checkout; absent: this service's own test page says it. */
  session?: PaidSession;
}

/** Whichever the payment names. */
export interface PurchaseReference {
  checkoutId?: string;
  paymentId?: string;
}

/** When and by which request something is said, and the payment's event that says it. */
interface Hearing {
  now: number;
  /** For the audit log. */
  requestId: string;
  notice?: PaymentNotice;
}

/**
 * Exactly once: what would have its effect a second time does nothing. A line in the audit log is written with its
 * booking, both or neither.
 */
export interface PurchaseRepository {
  /** One row more than the limit. */
  list(tenantId: string, query: ListQuery): Promise<PurchaseRow[]>;
  /** Credits what a checkout has bought; nothing is written where the session does not agree with it. */
  complete(payment: PaidCheckout, hearing: Hearing): Promise<PaymentMismatch | undefined>;
  /** A purchase, and its tenant's book as it is now. */
  find(reference: PurchaseReference): Promise<{ purchase: PurchaseRow; book: Book } | undefined>;
  /** Ends an unpaid checkout, or says that its payment takes longer; not by a session other than its own. */
  change(
    checkout: { checkoutId: string; sessionId: string },
    status: CheckoutStatus,
    now: number,
    notice: PaymentNotice,
  ): Promise<void>;
  /**
   * Takes credits back, or gives them again, in proportion. `unpaid`: the purchase it is about is not booked yet;
   * `unknown`: there is none that it names. Neither is remembered.
   */
  reverse(reference: PurchaseReference, reversal: Reversal, hearing: Hearing): Promise<'unpaid' | 'unknown' | 'heard'>;
}

/** What the audit log calls whoever paid. */
const ACTOR = 'payment';

/** The ids of a checkout, its purchase and its ledger entry differ in their prefix only: none can have a second. */
const withPrefix = (prefix: 'pur' | 'txn', checkoutId: string) => checkoutId.replace(/^cs_/, `${prefix}_`);

/** The statuses from which a payment's word leads to another. */
const CHANGES: Partial<Record<CheckoutStatus, CheckoutStatus[]>> = {
  processing: ['open', 'cancelled'],
  failed: ['open', 'cancelled', 'processing'],
  expired: ['open', 'cancelled'],
};

/** How a reversal is called in the ledger and in the audit log. */
function titleOf(reversal: Reversal): { reason: string; action: string } {
  if (reversal.kind === 'refund') return { reason: 'Refund', action: 'credits.refunded' };
  return reversal.funds === 'withdrawn'
    ? { reason: 'Dispute', action: 'credits.disputed' }
    : { reason: 'Dispute reinstated', action: 'credits.reinstated' };
}

export function createPurchaseRepository(connection: Connection): PurchaseRepository {
  const accounts = accountModel(connection);
  const checkouts = checkoutModel(connection);
  const purchases = purchaseModel(connection);
  const ledger = ledgerModel(connection);
  const audit = auditModel(connection);
  const once = createOnce(connection);

  /** Moves the account, with its lines in the ledger and in the audit log; `cause` makes the latter the only one. */
  async function book(
    { tenantId, _id: purchaseId, amount, currency }: PurchaseRow,
    entry: Pick<LedgerRow, '_id' | 'type' | 'amountMicro' | 'reason'>,
    { action, cause }: { action: string; cause: string },
    { now, requestId }: Hearing,
    session: ClientSession,
  ): Promise<void> {
    const { _id: transactionId, amountMicro } = entry;
    const account = await moveAccount(accounts, { tenantId, transactionId, amountMicro, now }, session);
    if (account === undefined) throw new Error(`Tenant ${tenantId} has no account`);
    const { balanceMicro: balanceAfterMicro, lastEntryAt: createdAt } = account;
    await ledger.create([{ ...entry, tenantId, purchaseId, balanceAfterMicro, createdAt }], { session });
    const line = {
      _id: derivedId('aud', tenantId, action, cause),
      tenantId,
      actor: ACTOR,
      action,
      target: purchaseId,
      requestId,
      createdAt: now,
      details: { credits: toCredits(amountMicro), amount, currency },
    };
    await audit.create([line], { session });
  }

  function toPurchase(row: CheckoutRow, paymentId: string | undefined, now: number): PurchaseRow {
    const { _id: checkoutId, tenantId, payment, packageId, creditsMicro, amount, currency } = row;
    return {
      _id: withPrefix('pur', checkoutId),
      transactionId: withPrefix('txn', checkoutId),
      tenantId,
      checkoutId,
      payment,
      creditsMicro,
      amount,
      currency,
      ...(packageId === undefined ? {} : { packageId }),
      ...(paymentId === undefined ? {} : { paymentId }),
      refundedAmount: 0,
      refundedMicro: 0,
      createdAt: now,
    };
  }

  function findPurchase(
    { checkoutId, paymentId }: PurchaseReference,
    session: ClientSession | null,
  ): Promise<PurchaseRow | null> {
    if (checkoutId !== undefined) return purchases.findById(withPrefix('pur', checkoutId)).session(session).lean();
    return paymentId === undefined ? Promise.resolve(null) : purchases.findOne({ paymentId }).session(session).lean();
  }

  return {
    list: (tenantId, query) => listRows(purchases, { tenantId }, query),

    complete: ({ checkoutId, paymentId, onlyOpen = false, session: paid }, hearing) =>
      once(hearing.notice, hearing.now, async (session) => {
        const { now } = hearing;
        const row = await checkouts.findById(checkoutId).session(session).lean();
        if (row === null) return undefined;
        const mismatch = paid === undefined ? undefined : mismatchOf(row, paid);
        if (mismatch !== undefined) throw new Mismatch(mismatch);
        const payable = onlyOpen
          ? { status: 'open' as const, expiresAt: { $gt: now } }
          : { status: { $ne: 'completed' as const } };
        const { modifiedCount } = await checkouts.updateOne(
          { _id: checkoutId, ...payable },
          { $set: { status: 'completed' } },
          { session },
        );
        if (modifiedCount === 0) return undefined;
        const purchase = toPurchase(row, paymentId, now);
        await purchases.create([purchase], { session });
        const entry = { _id: purchase.transactionId, type: 'purchase', amountMicro: row.creditsMicro } as const;
        await book(purchase, entry, { action: 'credits.purchased', cause: purchase._id }, hearing, session);
        return undefined;
      }).catch((error: unknown) => {
        if (error instanceof Mismatch) return error.mismatch;
        throw error;
      }),

    async find(reference) {
      const purchase = await findPurchase(reference, null);
      const account = purchase === null ? null : await accounts.findById(purchase.tenantId).lean();
      return purchase === null || account === null ? undefined : { purchase, book: toBook(account) };
    },

    async change({ checkoutId, sessionId }, status, now, notice) {
      await once(notice, now, async (session) => {
        const from = { $in: CHANGES[status] ?? [] };
        const isOwn = { $in: [sessionId, null] };
        await checkouts.updateOne(
          { _id: checkoutId, status: from, sessionId: isOwn },
          { $set: { status } },
          { session },
        );
      });
    },

    async reverse(reference, reversal, hearing) {
      const effect = async (session: ClientSession) => {
        const purchase = await findPurchase(reference, session);
        if (purchase === null) {
          const { checkoutId } = reference;
          const isOurs = checkoutId !== undefined && (await checkouts.exists({ _id: checkoutId }).session(session));
          throw new Unbooked(isOurs ? 'unpaid' : 'unknown');
        }
        const reversed = reverse(purchase, reversal);
        await purchases.updateOne({ _id: purchase._id }, { $set: reversed }, { session });
        const before = purchase.refundedMicro + (purchase.disputedMicro ?? 0);
        const amountMicro = before - reversed.refundedMicro - reversed.disputedMicro;
        if (amountMicro === 0) return 'heard' as const;
        const { reason, action } = titleOf(reversal);
        const entry = { _id: newId('txn'), type: 'adjustment', amountMicro, reason } as const;
        await book(purchase, entry, { action, cause: hearing.notice?.id ?? entry._id }, hearing, session);
        return 'heard' as const;
      };
      try {
        return (await once(hearing.notice, hearing.now, effect)) ?? 'heard';
      } catch (error) {
        if (error instanceof Unbooked) return error.outcome;
        throw error;
      }
    },
  };
}

/** Ends a transaction that is to leave nothing behind, not even the notice's id: it may be sent again. */
class Mismatch extends Error {
  override readonly name = 'Mismatch';
  readonly mismatch: PaymentMismatch;
  constructor(mismatch: PaymentMismatch) {
    super('The payment does not fit its checkout.');
    this.mismatch = mismatch;
  }
}

/** The same for a reversal of what is not booked. */
class Unbooked extends Error {
  override readonly name = 'Unbooked';
  readonly outcome: 'unpaid' | 'unknown';
  constructor(outcome: 'unpaid' | 'unknown') {
    super('There is no such purchase.');
    this.outcome = outcome;
  }
}
