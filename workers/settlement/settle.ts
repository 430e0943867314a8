import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import { RefusedError, UnbookableError } from '../../shared/infra/mongo/accounts/settlement-repository.ts';
import type { SettlementRepository } from '../../shared/infra/mongo/accounts/settlement-repository.ts';
import type { AccountStore } from '../../shared/infra/redis/accounts/account-store.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import { isReadable } from '../../shared/infra/redis/requests/outbox.ts';
import type { Outbox, OutboxEntry, ReadableEntry } from '../../shared/infra/redis/requests/outbox.ts';
import { isBadKey } from '../../shared/infra/redis/scripts.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';

export interface SettleEvents {
  'settlement.booked': [records: number];
  /** A round booked nothing of what waits. */
  'settlement.blocked': [reason: BlockReason];
}

export interface SettleDeps {
  outbox: Outbox;
  ledger: SettlementRepository;
  accounts: AccountStore;
  leases: LeaderLease;
  clock: Clock;
  events: Emitter<SettleEvents>;
  /** Publishes booked records. It comes before their acknowledgement, so a record may be published twice. */
  publishBooked: (records: readonly SettlementRecord[]) => Promise<void>;
  log: Logger;
}

/** Why a round booked nothing: a store is away, or MongoDB refuses every record. */
export type BlockReason = 'unavailable' | 'refused';

export const SETTLE_BATCH = 300;
const TASK = 'settle';
/** After this many refusals, each of it alone, a record is a dead letter. */
const TRIES_MAX = 5;
/** How often a lasting fault is logged as an error. */
const ALARM_MS = 30_000;
/** How often entries are read again that were read and not acknowledged, as after a lost answer. */
const LOOK_BACK_MS = 5_000;

export interface Settler {
  /** Books what waits on one shard, if this process leads there. Returns the number of entries it read. */
  settleShard(shard: number): Promise<number>;
  release(shard: number): Promise<void>;
}

/** Moves settlement records from the outbox into the book, each exactly once, however often it is delivered. */
export function createSettler({
  outbox,
  ledger,
  accounts,
  leases,
  clock,
  events,
  publishBooked,
  log,
}: SettleDeps): Settler {
  const tries = new Map<string, number>();
  /** When this leader last went through a shard's unacknowledged entries. */
  const lookedBackAt = new Map<number, number>();
  const alarmedAt = new Map<number, number>();
  /** Shards with a booked record since their last look back. */
  const bookedSinceLookBack = new Set<number>();

  async function book(shard: number, entries: readonly ReadableEntry[]): Promise<void> {
    const books = await ledger.settle(
      entries.map(({ record }) => record),
      clock.now(),
    );
    for (const [tenantId, account] of books) {
      const settled = entries.flatMap(({ record }) => (record.tenantId === tenantId ? [record.requestId] : []));
      await accounts.publishBook(shard, tenantId, account, settled).catch((cause: unknown) => {
        // What stands in Redis for one tenant keeps nobody else's records waiting.
        throw isBadKey(cause) ? new RefusedError('Redis refused the book of a tenant', { cause }) : cause;
      });
    }
    await publishBooked(entries.map(({ record }) => record));
    await outbox.acknowledge(shard, entries);
    bookedSinceLookBack.add(shard);
    events.emit('settlement.booked', entries.length);
  }

  async function deadLetter(shard: number, entry: OutboxEntry): Promise<void> {
    log.error('A settlement record was dead-lettered: it cannot be booked and needs an operator.', {
      shard,
      ...(entry.record === undefined ? {} : { requestId: entry.record.requestId }),
    });
    await outbox.deadLetter(shard, entry);
  }

  /** Counts a refusal of a record alone; the last one makes it a dead letter. */
  async function refuse(shard: number, entry: ReadableEntry, error: unknown): Promise<void> {
    const { requestId, tenantId } = entry.record;
    // It is tried again after a while, so that it does not block new records.
    lookedBackAt.set(shard, clock.now());
    const count = (tries.get(entry.id) ?? 0) + 1;
    tries.set(entry.id, count);
    log.warn('A settlement record could not be booked.', { shard, requestId, tenantId, count, error });
    if (count < TRIES_MAX) return;
    tries.delete(entry.id);
    await deadLetter(shard, entry);
  }

  /**
   * Books a batch record by record, so that one bad record does not hold up the rest. A refusal of unknown cause counts
   * against a record only if another one is booked meanwhile: otherwise MongoDB refuses everything.
   */
  async function bookOneByOne(shard: number, entries: readonly ReadableEntry[], wasBooking: boolean): Promise<void> {
    const refused: { entry: ReadableEntry; error: RefusedError }[] = [];
    let isBooking = wasBooking;
    for (const entry of entries) {
      try {
        await book(shard, [entry]);
        tries.delete(entry.id);
        isBooking = true;
      } catch (error) {
        if (error instanceof UnbookableError) await refuse(shard, entry, error);
        else if (error instanceof RefusedError) refused.push({ entry, error });
        else throw error;
      }
    }
    const [first] = refused;
    if (first === undefined) return;
    if (!isBooking) {
      for (const { entry } of refused) tries.delete(entry.id);
      throw first.error;
    }
    for (const { entry, error } of refused) await refuse(shard, entry, error);
  }

  /** Tells the operator. No record is given up while this lasts. */
  function raiseAlarm(shard: number, error: unknown): void {
    events.emit('settlement.blocked', error instanceof RefusedError ? 'refused' : 'unavailable');
    const now = clock.now();
    if (now - (alarmedAt.get(shard) ?? -Infinity) < ALARM_MS) return;
    alarmedAt.set(shard, now);
    log.error('Settlement is blocked: no record is booked, and all of them wait.', { shard, error });
  }

  async function nextEntries(shard: number): Promise<{ entries: OutboxEntry[]; isLookBack: boolean }> {
    const now = clock.now();
    if (now - (lookedBackAt.get(shard) ?? -Infinity) >= LOOK_BACK_MS) {
      const left = await outbox.read(shard, 'redelivered', SETTLE_BATCH);
      if (left.length < SETTLE_BATCH) lookedBackAt.set(shard, now);
      if (left.length > 0) return { entries: left, isLookBack: true };
    }
    return { entries: await outbox.read(shard, 'new', SETTLE_BATCH), isLookBack: false };
  }

  async function bookAll(shard: number, entries: readonly OutboxEntry[], wasBooking: boolean): Promise<void> {
    for (const entry of entries) if (!isReadable(entry)) await deadLetter(shard, entry);
    const readable = entries.filter(isReadable);
    if (readable.length === 0) return;
    try {
      await book(shard, readable);
    } catch (error) {
      if (!(error instanceof UnbookableError || error instanceof RefusedError)) throw error;
      log.warn('A settlement batch was not booked; its records are tried one by one.', {
        shard,
        count: readable.length,
        error,
      });
      await bookOneByOne(shard, readable, wasBooking);
    }
  }

  async function settleShard(shard: number): Promise<number> {
    if (!(await leases.hold(shard, TASK))) {
      lookedBackAt.delete(shard);
      return 0;
    }
    try {
      const { entries, isLookBack } = await nextEntries(shard);
      const wasBooking = isLookBack && bookedSinceLookBack.delete(shard);
      await bookAll(shard, entries, wasBooking);
      if (entries.length > 0) alarmedAt.delete(shard);
      return entries.length;
    } catch (error) {
      raiseAlarm(shard, error);
      // The entries are not acknowledged. The next round begins with them; if one of them may be at fault, a later round.
      if (error instanceof RefusedError) lookedBackAt.set(shard, clock.now());
      else lookedBackAt.delete(shard);
      throw error;
    }
  }

  return {
    settleShard,
    release: (shard) => leases.release(shard, TASK),
  };
}
