import type { ClientSession } from 'mongoose';

import type { Models } from '../models.ts';
import type { AccountRow } from '../rows.ts';

/** What a booking adds to an account. */
export interface AccountMove {
  tenantId: string;
  /** Of a grant, purchase or adjustment. */
  transactionId?: string;
  /** Signed micro-credits. */
  amountMicro: number;
  /** Billed tokens by month. */
  tokensByMonth?: Readonly<Record<string, number>>;
  /** Milliseconds since the epoch. */
  now: number;
}

/** The account after the move; ledger entries of the booking carry its `lastEntryAt` as their time. */
export type MovedAccount = AccountRow & { lastEntryAt: number };

const plus = (field: string, amount: number) => ({ $add: [{ $ifNull: [`$${field}`, 0] }, amount] });

/**
 * Moves an account within a transaction, once for each booking. Its entries get a time that is later than that of every
 * entry before, whichever process booked them: so a list by time is in the order of booking, and the balance that an
 * entry carries is the sum of the list up to it. Undefined: there is no such account.
 */
export async function moveAccount(
  { accounts }: Pick<Models, 'accounts'>,
  { tenantId, transactionId, amountMicro, tokensByMonth = {}, now }: AccountMove,
  session: ClientSession,
): Promise<MovedAccount | undefined> {
  const months = Object.entries(tokensByMonth).map(([month, tokens]) => {
    const field = `tokensByMonth.${month}`;
    return [field, plus(field, tokens)] as const;
  });
  const balanceMicro = plus('balanceMicro', amountMicro);
  const isTopUp = transactionId !== undefined && amountMicro > 0;
  const moved = {
    balanceMicro,
    ...(isTopUp ? { lastTopUp: { transactionId, balanceMicro } } : {}),
    version: plus('version', 1),
    lastEntryAt: { $max: [now, plus('lastEntryAt', 1)] },
    ...Object.fromEntries(months),
  };
  const row = await accounts
    .findOneAndUpdate({ _id: tenantId }, [{ $set: moved }], { session, returnDocument: 'after', updatePipeline: true })
    .lean();
  return row === null ? undefined : { ...row, lastEntryAt: row.lastEntryAt ?? now };
}
