/**
 * The door of settlement: moves charges from Redis into the ledger, each exactly once.
 *
 * - `finish` puts a settlement record into the shard's outbox. The worker that leads the shard, by a lease of 5 s,
 *   reads up to 300 and books them in one transaction: entries, balances and usage. It leaves out what the
 *   ledger knows, and an entry's id is made of the request's, so MongoDB refuses a second one (book-records.ts).
 * - The new books go to Redis, and the records are acknowledged. One whose charge is pending again, because Redis lost
 *   that book, stays and is booked once more.
 * - Every step may be repeated: two leaders at once, a record delivered twice, a death between two steps change
 *   nothing.
 * - While MongoDB is away, full or read-only, records wait, and the log and `parley_settlement_blocked_total` say so. A
 *   refused record is tried alone. After five refusals that are its own fault it becomes a dead letter, which is tried
 *   again every hour and on request.
 *
 * sweep.ts ends what nobody else ends, recover-lost.ts replays what Redis lost, and reconcile.ts compares everything
 * with the ledger, which is right (docs/decisions/0009-holds-and-ledger.md). `test/model` has the rules of the scripts
 * a second time, as pure transitions, and explores crashes, lost replies and double deliveries: change the model first.
 */
import { RefusedError } from '../../shared/mongo/accounts/settlement-repository.ts';
import type { LeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import type { Outbox, OutboxEntry } from '../../shared/requests/outbox.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import { createBookRecords, createPendingRetries } from './book-records.ts';
import type { BookRecordsDeps } from './book-records.ts';

export interface SettleEvents {
  'settlement.booked': [records: number];
  /** A round could not book the waiting records. */
  'settlement.blocked': [reason: BlockReason];
}

export interface SettleDeps extends Omit<BookRecordsDeps, 'outbox' | 'pendingRetries' | 'onBooked'> {
  outbox: Outbox;
  leases: LeaderLease;
  events: Emitter<SettleEvents>;
}

/** Why a round booked nothing: a store is unavailable, or every record is refused. */
export type BlockReason = 'unavailable' | 'refused';

/** The most entries that one round reads. */
export const SETTLE_BATCH = 300;
const TASK = 'settle';
/** Interval of logging a lasting failure as an error. */
const ALARM_MS = 30_000;

export interface Settler {
  /** Books waiting records of one shard, if this process leads there. Returns the number of entries it read. */
  settleShard(shard: number): Promise<number>;
  release(shard: number): Promise<void>;
}

/**
 * Moves settlement records from the outbox into the ledger and the accounts, each exactly once, however often it is
 * delivered. This file reads the outbox, round by round; book-records.ts books what a round has read.
 */
export function createSettler(deps: SettleDeps): Settler {
  const { outbox, leases, clock, events, log } = deps;
  const pendingRetries = createPendingRetries(clock);
  const bookRecords = createBookRecords({
    ...deps,
    pendingRetries,
    onBooked: (records) => {
      events.emit('settlement.booked', records);
    },
  });
  /** When the alarm of a shard was last raised; no entry: settlement is not blocked there. */
  const alarmedAt = new Map<number, number>();

  /** Alerts the operator. While settlement is blocked, no record becomes a dead letter. */
  function raiseAlarm(shard: number, error: unknown): void {
    events.emit('settlement.blocked', error instanceof RefusedError ? 'refused' : 'unavailable');
    const now = clock.now();
    if (now - (alarmedAt.get(shard) ?? -Infinity) < ALARM_MS) return;
    alarmedAt.set(shard, now);
    log.error('Settlement is blocked: no record is booked, and all of them wait.', { shard, error });
  }

  async function nextEntries(shard: number): Promise<{ entries: OutboxEntry[]; isRetry: boolean }> {
    if (pendingRetries.isDue(shard)) {
      const unacknowledged = await outbox.read(shard, 'redelivered', SETTLE_BATCH);
      if (unacknowledged.length < SETTLE_BATCH) pendingRetries.postpone(shard);
      if (unacknowledged.length > 0) return { entries: unacknowledged, isRetry: true };
    }
    return { entries: await outbox.read(shard, 'new', SETTLE_BATCH), isRetry: false };
  }

  return {
    async settleShard(shard) {
      if (!(await leases.hold(shard, TASK))) {
        pendingRetries.makeDue(shard);
        return 0;
      }
      try {
        const { entries, isRetry } = await nextEntries(shard);
        await bookRecords(shard, entries, { areOthersBooked: isRetry && pendingRetries.takeBooked(shard) });
        if (entries.length > 0) alarmedAt.delete(shard);
        return entries.length;
      } catch (error) {
        raiseAlarm(shard, error);
        // The entries read stay unacknowledged. After an interruption, the next round begins with them. After a
        // refusal, one of the records may be the cause, so new ones go first.
        if (error instanceof RefusedError) pendingRetries.postpone(shard);
        else pendingRetries.makeDue(shard);
        throw error;
      }
    },

    release: (shard) => leases.release(shard, TASK),
  };
}
