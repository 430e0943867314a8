import { Schema } from 'mongoose';
import type { ClientSession, Connection } from 'mongoose';

import { collection, count, options, required } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';

/** An event of the payment that has had its effect. */
export interface PaymentEventRow {
  /** The event's id, or what it says. */
  _id: string;
  type: string;
  createdAt: number;
  /** MongoDB deletes it then. */
  expiresAt: Date;
}

const paymentEventSchema = new Schema<PaymentEventRow>(
  { _id: required, type: required, createdAt: count, expiresAt: { type: Date, required: true } },
  options,
).index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

export const paymentEventModel = collection<PaymentEventRow>('PaymentEvent', 'payment_events', paymentEventSchema);

/** Longer than any payment sends an event again. */
const EVENT_KEPT_MS = 90 * 24 * 3_600_000;

/** What the payment has said; its effect and this event's id are written together, or neither. */
export interface PaymentNotice {
  id: string;
  type: string;
  /** Names what the event says, if the payment may say that in a second event with another id: it has its effect once. */
  saying?: string;
}

/** Runs `effect` in a transaction unless the notice has had its effect: then it resolves with undefined. */
export type Once = <Result>(
  notice: PaymentNotice | undefined,
  now: number,
  effect: (session: ClientSession) => Promise<Result>,
) => Promise<Result | undefined>;

export function createOnce(connection: Connection): Once {
  const paymentEvents = paymentEventModel(connection);

  const namesOf = ({ id, saying }: PaymentNotice) => (saying === undefined ? [id] : [id, saying]);

  async function isKnown(notice: PaymentNotice): Promise<boolean> {
    return (await paymentEvents.exists({ _id: { $in: namesOf(notice) } })) !== null;
  }

  return async (notice, now, effect) => {
    if (notice !== undefined && (await isKnown(notice))) return undefined;
    try {
      return await connection.transaction(async (session) => {
        if (notice !== undefined) {
          const row = { type: notice.type, createdAt: now, expiresAt: new Date(now + EVENT_KEPT_MS) };
          const rows = namesOf(notice).map((_id) => ({ _id, ...row }));
          await paymentEvents.create(rows, { session, ordered: true });
        }
        return effect(session);
      });
    } catch (error) {
      // Another process may hear the same at the same time.
      if (notice !== undefined && isDuplicateKey(error) && (await isKnown(notice))) return undefined;
      throw error;
    }
  };
}
