import type { ClientSession, Connection } from 'mongoose';

import { collection } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';

/** This event has had its effect, so a repeated one has none. */
export interface PaymentEventRow {
  /** The event's id, or in a second row its `occurrence`. */
  _id: string;
  type: string;
  createdAt: number;
  expiresAt: Date;
}

export const paymentEventModel = collection<PaymentEventRow>('payment_events', [
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** No payment repeats an event for this long. */
const EVENT_KEPT_MS = 90 * 24 * 3_600_000;

/** One transaction writes the effect and the id. */
export interface PaymentNotice {
  id: string;
  type: string;
  /** The payment may report one occurrence in two events with different ids. */
  occurrence?: string;
}

/** Runs `effect` in a transaction; resolves with undefined if the notice has had its effect before. */
export type Once = <Result>(
  notice: PaymentNotice | undefined,
  now: number,
  effect: (session: ClientSession) => Promise<Result>,
) => Promise<Result | undefined>;

export function createOnce(connection: Connection): Once {
  const paymentEvents = paymentEventModel(connection);

  const namesOf = ({ id, occurrence }: PaymentNotice) => (occurrence === undefined ? [id] : [id, occurrence]);

  async function isKnown(notice: PaymentNotice): Promise<boolean> {
    return (await paymentEvents.exists({ _id: { $in: namesOf(notice) } })) !== null;
  }

  return async (notice, now, effect) => {
    if (notice !== undefined && (await isKnown(notice))) return undefined;
    try {
      return await connection.transaction(async (session) => {
        if (notice !== undefined) {
          const row = { type: notice.type, createdAt: now, expiresAt: new Date(now + EVENT_KEPT_MS) };
          const rows = namesOf(notice).map((_id): PaymentEventRow => ({ _id, ...row }));
          await paymentEvents.create(rows, { session, ordered: true });
        }
        return effect(session);
      });
    } catch (error) {
      // Another process received the same notice and was faster.
      if (notice !== undefined && isDuplicateKey(error) && (await isKnown(notice))) return undefined;
      throw error;
    }
  };
}
