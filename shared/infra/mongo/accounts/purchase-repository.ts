import type { ClientSession, Connection } from 'mongoose';

import type { ListQuery } from '../../../contracts/list-page.ts';
import { refundOf } from '../../../domain/pricing/pricing.ts';
import { newId } from '../../../lifecycle/ids.ts';
import { isDuplicateKey } from '../connection.ts';
import { listRows } from '../list-rows.ts';
import { accountModel, moveAccount, toBook } from './account-repository.ts';
import type { Book } from './account-repository.ts';
import { checkoutModel, paymentEventModel, purchaseModel } from './billing-models.ts';
import type { CheckoutRow, CheckoutStatus, PurchaseRow } from './billing-rows.ts';
import { ledgerModel } from './ledger-repository.ts';

/** Longer than any payment sends an event again. */
const EVENT_KEPT_MS = 90 * 24 * 3_600_000;

/** What the payment has said; its effect and this event's id are written together, or neither. */
export interface PaymentNotice {
  id: string;
  type: string;
}

export interface PaidCheckout {
  checkoutId: string;
  paymentId?: string;
  /** Only a checkout that is still open and not over can be paid; without it, money that came is money that counts. */
  onlyOpen?: boolean;
}

export interface Refund {
  /** Whichever the payment names. */
  checkoutId?: string;
  paymentId?: string;
  /** All that was ever paid back of the purchase, in minor units. */
  refundedAmount: number;
}

/** What a payment has moved. */
export interface Moved {
  purchase: PurchaseRow;
  /** Signed micro-credits. */
  amountMicro: number;
  book: Book;
}

/** Exactly once: each method does nothing, and returns undefined, where what it would do has been done. */
export interface PurchaseRepository {
  /** One row more than the limit. */
  list(tenantId: string, query: ListQuery): Promise<PurchaseRow[]>;
  /** Credits what a checkout has bought. */
  complete(payment: PaidCheckout, now: number, notice?: PaymentNotice): Promise<Moved | undefined>;
  /** What a completed checkout has bought, and its tenant's book as it is now. */
  completed(checkoutId: string): Promise<Pick<Moved, 'purchase' | 'book'> | undefined>;
  /** Ends an unpaid checkout, or says that its payment takes longer. */
  change(checkoutId: string, status: CheckoutStatus, now: number, notice: PaymentNotice): Promise<void>;
  /** Takes credits back in proportion. `unpaid`: the purchase it is about is not booked yet. */
  refund(refund: Refund, now: number, notice: PaymentNotice): Promise<Moved | 'unpaid' | undefined>;
}

/** The ids of a checkout, its purchase and its ledger entry differ in their prefix only: none can have a second. */
const withPrefix = (prefix: 'pur' | 'txn', checkoutId: string) => checkoutId.replace(/^cs_/, `${prefix}_`);

/** The statuses from which a payment's word leads to another. */
const CHANGES: Partial<Record<CheckoutStatus, CheckoutStatus[]>> = {
  processing: ['open', 'cancelled'],
  failed: ['open', 'cancelled', 'processing'],
  expired: ['open', 'cancelled'],
};

export function createPurchaseRepository(connection: Connection): PurchaseRepository {
  const accounts = accountModel(connection);
  const checkouts = checkoutModel(connection);
  const purchases = purchaseModel(connection);
  const ledger = ledgerModel(connection);
  const paymentEvents = paymentEventModel(connection);

  async function isKnown({ id }: PaymentNotice): Promise<boolean> {
    return (await paymentEvents.exists({ _id: id })) !== null;
  }

  /** Runs `effect` unless the notice has had its effect; another one may do the same at the same time. */
  async function once<Result>(
    notice: PaymentNotice | undefined,
    now: number,
    effect: (session: ClientSession) => Promise<Result>,
  ): Promise<Result | undefined> {
    if (notice !== undefined && (await isKnown(notice))) return undefined;
    try {
      return await connection.transaction(async (session) => {
        if (notice !== undefined) {
          const row = { _id: notice.id, type: notice.type, createdAt: now, expiresAt: new Date(now + EVENT_KEPT_MS) };
          await paymentEvents.create([row], { session });
        }
        return effect(session);
      });
    } catch (error) {
      if (notice !== undefined && isDuplicateKey(error) && (await isKnown(notice))) return undefined;
      throw error;
    }
  }

  async function book(purchase: PurchaseRow, entry: BookedEntry, now: number, session: ClientSession): Promise<Moved> {
    const { tenantId, _id: purchaseId } = purchase;
    const { amountMicro } = entry;
    const account = await moveAccount(accounts, { tenantId, transactionId: entry._id, amountMicro, now }, session);
    if (account === undefined) throw new Error(`Tenant ${tenantId} has no account`);
    const { balanceMicro: balanceAfterMicro, lastEntryAt: createdAt } = account;
    await ledger.create([{ ...entry, tenantId, purchaseId, balanceAfterMicro, createdAt }], { session });
    return { purchase, amountMicro, book: toBook(account) };
  }

  function toPurchase(row: CheckoutRow, paymentId: string | undefined, now: number): PurchaseRow {
    const { _id: checkoutId, tenantId, payment, packageId, creditsMicro, amount, currency } = row;
    return {
      _id: withPrefix('pur', checkoutId),
      transactionId: withPrefix('txn', checkoutId),
      ...{ tenantId, checkoutId, payment, creditsMicro, amount, currency },
      ...(packageId === undefined ? {} : { packageId }),
      ...(paymentId === undefined ? {} : { paymentId }),
      refundedAmount: 0,
      refundedMicro: 0,
      createdAt: now,
    };
  }

  async function findPurchase({ checkoutId, paymentId }: Refund, session: ClientSession): Promise<PurchaseRow | null> {
    if (checkoutId !== undefined) {
      return purchases.findById(withPrefix('pur', checkoutId), null, { session }).lean();
    }
    return paymentId === undefined ? null : purchases.findOne({ paymentId }, null, { session }).lean();
  }

  return {
    list: (tenantId, query) => listRows(purchases, { tenantId }, query),

    complete: ({ checkoutId, paymentId, onlyOpen = false }, now, notice) =>
      once(notice, now, async (session) => {
        const payable = onlyOpen
          ? { status: 'open' as const, expiresAt: { $gt: now } }
          : { status: { $ne: 'completed' as const } };
        const row = await checkouts
          .findOneAndUpdate(
            { _id: checkoutId, ...payable },
            { $set: { status: 'completed' } },
            { session, returnDocument: 'after' },
          )
          .lean();
        if (row === null) return undefined;
        const purchase = toPurchase(row, paymentId, now);
        await purchases.create([purchase], { session });
        const entry = { _id: purchase.transactionId, type: 'purchase', amountMicro: row.creditsMicro } as const;
        return book(purchase, entry, now, session);
      }),

    async completed(checkoutId) {
      const purchase = await purchases.findById(withPrefix('pur', checkoutId)).lean();
      const account = purchase === null ? null : await accounts.findById(purchase.tenantId).lean();
      return purchase === null || account === null ? undefined : { purchase, book: toBook(account) };
    },

    async change(checkoutId, status, now, notice) {
      await once(notice, now, async (session) => {
        const from = { $in: CHANGES[status] ?? [] };
        await checkouts.updateOne({ _id: checkoutId, status: from }, { $set: { status } }, { session });
      });
    },

    async refund(refund, now, notice) {
      const { checkoutId, refundedAmount } = refund;
      // Nothing of it is written down, so that the payment says it again once the purchase is booked.
      const isUnpaid = async (session: ClientSession) =>
        checkoutId !== undefined && (await checkouts.exists({ _id: checkoutId }).session(session)) !== null;
      const early = new EarlyRefund();
      return once(notice, now, async (session) => {
        const purchase = await findPurchase(refund, session);
        if (purchase === null) {
          if (await isUnpaid(session)) throw early;
          return undefined;
        }
        const refundedMicro = refundOf(purchase, refundedAmount);
        const amountMicro = purchase.refundedMicro - refundedMicro;
        if (amountMicro >= 0) return undefined;
        const paidBack = { refundedAmount: Math.min(refundedAmount, purchase.amount), refundedMicro };
        await purchases.updateOne({ _id: purchase._id }, { $set: paidBack }, { session });
        const entry = { _id: newId('txn'), type: 'adjustment', amountMicro, reason: 'Refund' } as const;
        return book({ ...purchase, ...paidBack }, entry, now, session);
      }).catch((error: unknown) => {
        if (error === early) return 'unpaid' as const;
        throw error;
      });
    },
  };
}

interface BookedEntry {
  _id: string;
  type: 'purchase' | 'adjustment';
  amountMicro: number;
  reason?: string;
}

/** Ends the transaction of a refund whose purchase is not booked yet. */
class EarlyRefund extends Error {
  override readonly name = 'EarlyRefund';
}
