import type { ClientSession, Connection } from 'mongoose';

import { mismatchOf, reverse } from '../../domain/payments.ts';
import type { PaidSession, PaymentMismatch, Reversal } from '../../domain/payments.ts';
import { toCredits } from '../../domain/pricing.ts';
import { derivedId, newId } from '../../lifecycle/ids.ts';
import { auditModel } from '../tenants/audit-repository.ts';
import type { AuditRow } from '../tenants/audit-repository.ts';
import { accountModel, moveAccount } from './account-repository.ts';
import { checkoutModel } from './checkout-repository.ts';
import type { CheckoutRow, CheckoutStatus } from './checkout-repository.ts';
import { ledgerModel } from './ledger-repository.ts';
import type { LedgerRow } from './ledger-repository.ts';
import { createOnce } from './payment-notices.ts';
import type { Once, PaymentNotice } from './payment-notices.ts';
import { findPurchase, idFromCheckout, purchaseModel } from './purchase-repository.ts';
import type { PurchaseReference, PurchaseRow } from './purchase-repository.ts';

export interface PaidCheckout {
  checkoutId: string;
  paymentId?: string;
  /**
   * Books only an open, unexpired checkout, for the test page. Otherwise any that is not completed: Stripe's money has
   * arrived, so it buys credits even if the checkout was cancelled or expired.
   */
  onlyOpen?: boolean;
  /** Must agree with the checkout. Absent: this service's own test page has no session. */
  session?: PaidSession;
}

interface BookingContext {
  now: number;
  /** The request that brought the notice, for the audit log. */
  requestId: string;
  /** Absent: the test page, where the checkout's status guards against repeated calls. */
  notice?: PaymentNotice;
}

/** `booked`: also before, or with nothing to move. `unpaid`: checkout not booked. `unknown`: no checkout here. */
export type ReversalOutcome = 'booked' | 'unpaid' | 'unknown';

export type PaymentBookings = ReturnType<typeof createPaymentBookings>;

/**
 * Books what payments report, each notice exactly once: a repeated one writes nothing. One transaction writes a booking
 * and its entry in the audit log.
 */
export function createPaymentBookings(connection: Connection) {
  const once = createOnce(connection);
  const book = createBook(connection);
  return {
    complete: createComplete(connection, once, book),
    reverse: createReverse(connection, once, book),
    changeStatus: createChangeStatus(connection, once),
  };
}

/** Stands for the payer in the audit log. */
const ACTOR = 'payment';

interface Booking {
  purchase: PurchaseRow;
  entry: Pick<LedgerRow, '_id' | 'type' | 'amountMicro' | 'reason'>;
  action: string;
  /** Makes the audit entry unique for its tenant and action. */
  cause: string;
  context: BookingContext;
}

type Book = (booking: Booking, session: ClientSession) => Promise<void>;

function createBook(connection: Connection): Book {
  const accounts = accountModel(connection);
  const ledger = ledgerModel(connection);
  const audit = auditModel(connection);
  return async ({ purchase, entry, action, cause, context }, session) => {
    const { tenantId, _id: purchaseId, amount, currency } = purchase;
    const { _id: transactionId, amountMicro } = entry;
    const { now, requestId } = context;
    const account = await moveAccount(accounts, { tenantId, transactionId, amountMicro, now }, session);
    if (account === undefined) throw new Error(`Tenant ${tenantId} has no account`);
    const { balanceMicro: balanceAfterMicro, lastEntryAt: createdAt } = account;
    const line: LedgerRow = { ...entry, tenantId, purchaseId, balanceAfterMicro, createdAt };
    await ledger.create([line], { session });
    const auditEntry: AuditRow = {
      _id: derivedId('aud', tenantId, action, cause),
      tenantId,
      actor: ACTOR,
      action,
      target: purchaseId,
      requestId,
      createdAt: now,
      details: { credits: toCredits(amountMicro), amount, currency },
    };
    await audit.create([auditEntry], { session });
  };
}

function toPurchase(row: CheckoutRow, paymentId: string | undefined, now: number): PurchaseRow {
  const { _id: checkoutId, tenantId, payment, packageId, creditsMicro, amount, currency } = row;
  return {
    _id: idFromCheckout('pur', checkoutId),
    transactionId: idFromCheckout('txn', checkoutId),
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

/** Grants a paid checkout's credits. Where the session disagrees with it, says in what and writes nothing. */
function createComplete(connection: Connection, once: Once, book: Book) {
  const checkouts = checkoutModel(connection);
  const purchases = purchaseModel(connection);

  /** False: the checkout was completed before, or may no longer be. */
  async function markCompleted({ checkoutId, onlyOpen = false }: PaidCheckout, now: number, session: ClientSession) {
    const payable = onlyOpen
      ? { status: 'open' as const, expiresAt: { $gt: now } }
      : { status: { $ne: 'completed' as const } };
    const { modifiedCount } = await checkouts.updateOne(
      { _id: checkoutId, ...payable },
      { $set: { status: 'completed' }, $unset: { removeAt: 1 } },
      { session },
    );
    return modifiedCount === 1;
  }

  return async (payment: PaidCheckout, context: BookingContext): Promise<PaymentMismatch | undefined> => {
    const { now, notice } = context;
    try {
      await once(notice, now, async (session) => {
        const row = await checkouts.findById(payment.checkoutId).session(session).lean();
        if (row === null) return;
        const mismatch = payment.session === undefined ? undefined : mismatchOf(row, payment.session);
        if (mismatch !== undefined) throw new Mismatch(mismatch);
        if (!(await markCompleted(payment, now, session))) return;
        const purchase = toPurchase(row, payment.paymentId, now);
        await purchases.create([purchase], { session });
        const entry = { _id: purchase.transactionId, type: 'purchase', amountMicro: row.creditsMicro } as const;
        await book({ purchase, entry, action: 'credits.purchased', cause: purchase._id, context }, session);
      });
      return undefined;
    } catch (error) {
      if (error instanceof Mismatch) return error.mismatch;
      throw error;
    }
  };
}

function namesOf(reversal: Reversal): { reason: string; action: string } {
  if ('refund' in reversal && reversal.refund.isFailed)
    return { reason: 'Refund failed', action: 'credits.reinstated' };
  if (reversal.kind === 'refund') return { reason: 'Refund', action: 'credits.refunded' };
  return reversal.funds === 'withdrawn'
    ? { reason: 'Dispute', action: 'credits.disputed' }
    : { reason: 'Dispute reinstated', action: 'credits.reinstated' };
}

/**
 * Takes credits back in proportion to the returned money, or grants them again if it was reinstated. Writes nothing for
 * `unpaid` and `unknown`, not even the notice's id, so the notice may be sent again.
 */
function createReverse(connection: Connection, once: Once, book: Book) {
  const checkouts = checkoutModel(connection);
  const purchases = purchaseModel(connection);

  async function requirePurchase(reference: PurchaseReference, session: ClientSession): Promise<PurchaseRow> {
    const purchase = await findPurchase(purchases, reference, session);
    if (purchase !== null) return purchase;
    const { checkoutId } = reference;
    const isOurs = checkoutId !== undefined && (await checkouts.exists({ _id: checkoutId }).session(session));
    throw new NotBooked(isOurs ? 'unpaid' : 'unknown');
  }

  return async (
    reference: PurchaseReference,
    reversal: Reversal,
    context: BookingContext,
  ): Promise<ReversalOutcome> => {
    try {
      await once(context.notice, context.now, async (session) => {
        const purchase = await requirePurchase(reference, session);
        const reversed = reverse(purchase, reversal);
        await purchases.updateOne({ _id: purchase._id }, { $set: reversed }, { session });
        const takenBefore = purchase.refundedMicro + (purchase.disputedMicro ?? 0);
        const amountMicro = takenBefore - reversed.refundedMicro - reversed.disputedMicro;
        if (amountMicro === 0) return;
        const { reason, action } = namesOf(reversal);
        const entry = { _id: newId('txn'), type: 'adjustment', amountMicro, reason } as const;
        await book({ purchase, entry, action, cause: context.notice?.id ?? entry._id, context }, session);
      });
      return 'booked';
    } catch (error) {
      if (error instanceof NotBooked) return error.outcome;
      throw error;
    }
  };
}

/** A notice changes the first status only from one of the others. */
const CHANGES: Partial<Record<CheckoutStatus, CheckoutStatus[]>> = {
  processing: ['open', 'cancelled'],
  failed: ['open', 'cancelled', 'processing'],
  expired: ['open', 'cancelled'],
};

/** Only if the session is the checkout's own and its status allows the change. */
function createChangeStatus(connection: Connection, once: Once) {
  const checkouts = checkoutModel(connection);
  return async (
    { checkoutId, sessionId }: { checkoutId: string; sessionId: string },
    status: CheckoutStatus,
    now: number,
    notice: PaymentNotice,
  ): Promise<void> => {
    await once(notice, now, async (session) => {
      const from = { $in: CHANGES[status] ?? [] };
      // Null: the checkout does not know its session yet.
      const isOwn = { $in: [sessionId, null] };
      await checkouts.updateOne({ _id: checkoutId, status: from, sessionId: isOwn }, { $set: { status } }, { session });
    });
  };
}

/** Rolls the transaction back, the notice's id included, so that the payment may send the notice again. */
class Mismatch extends Error {
  override readonly name = 'Mismatch';
  readonly mismatch: PaymentMismatch;
  constructor(mismatch: PaymentMismatch) {
    super('The payment does not fit its checkout.');
    this.mismatch = mismatch;
  }
}

/** Likewise rolls back a reversal of a purchase that is not booked. */
class NotBooked extends Error {
  override readonly name = 'NotBooked';
  readonly outcome: 'unpaid' | 'unknown';
  constructor(outcome: 'unpaid' | 'unknown') {
    super('There is no such purchase.');
    this.outcome = outcome;
  }
}
