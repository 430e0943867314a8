import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import { UnbookableError } from '../../shared/infra/mongo/accounts/settlement-repository.ts';
import type { SettlementRepository } from '../../shared/infra/mongo/accounts/settlement-repository.ts';
import type { AccountStore } from '../../shared/infra/redis/accounts/account-store.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { Outbox, OutboxEntry } from '../../shared/infra/redis/requests/outbox.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import type { WorkerEvents } from '../worker-events.ts';

export interface SettleDeps {
  outbox: Outbox;
  ledger: SettlementRepository;
  accounts: AccountStore;
  leases: LeaderLease;
  clock: Clock;
  events: Emitter<Pick<WorkerEvents, 'settlement.booked'>>;
  /** Publishes booked records before they are acknowledged, so perhaps more than once. */
  publishBooked: (records: readonly SettlementRecord[]) => Promise<void>;
  log: Logger;
}

export const SETTLE_BATCH = 200;
const TASK = 'settle';
/** A record that MongoDB refuses so often, each time alone, will not succeed by itself. */
const TRIES_MAX = 5;
/** How often entries that were read and never acknowledged are read again: an answer lost on the way leaves some. */
const LOOK_BACK_MS = 5_000;

type Readable = OutboxEntry & { record: SettlementRecord };

function isReadable(entry: OutboxEntry): entry is Readable {
  return entry.record !== undefined;
}

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

  async function book(shard: number, entries: readonly Readable[]): Promise<void> {
    const books = await ledger.settle(
      entries.map(({ record }) => record),
      clock.now(),
    );
    for (const [tenantId, account] of books) {
      const settled = entries.flatMap(({ record }) => (record.tenantId === tenantId ? [record.requestId] : []));
      await accounts.publishBook(shard, tenantId, account, settled);
    }
    await publishBooked(entries.map(({ record }) => record));
    await outbox.acknowledge(
      shard,
      entries.map(({ id }) => id),
    );
    events.emit('settlement.booked', entries.length);
  }

  async function park(shard: number, entry: OutboxEntry): Promise<void> {
    log.error('A settlement record was parked: it cannot be booked and needs an operator.', {
      shard,
      ...(entry.record === undefined ? {} : { requestId: entry.record.requestId }),
    });
    await outbox.park(shard, entry);
  }

  /** One bad record must not hold up the rest; only MongoDB's or Redis's absence does. */
  async function bookOneByOne(shard: number, entries: readonly Readable[]): Promise<void> {
    for (const entry of entries) {
      try {
        await book(shard, [entry]);
        tries.delete(entry.id);
      } catch (error) {
        if (!(error instanceof UnbookableError)) throw error;
        const { requestId, tenantId } = entry.record;
        const count = (tries.get(entry.id) ?? 0) + 1;
        tries.set(entry.id, count);
        log.warn('A settlement record could not be booked.', { shard, requestId, tenantId, attempt: count, error });
        if (count < TRIES_MAX) continue;
        tries.delete(entry.id);
        await park(shard, entry);
      }
    }
  }

  async function nextEntries(shard: number): Promise<OutboxEntry[]> {
    const now = clock.now();
    if (now - (lookedBackAt.get(shard) ?? -Infinity) >= LOOK_BACK_MS) {
      const left = await outbox.read(shard, 'redelivered', SETTLE_BATCH);
      if (left.length < SETTLE_BATCH) lookedBackAt.set(shard, now);
      if (left.length > 0) return left;
    }
    return outbox.read(shard, 'new', SETTLE_BATCH);
  }

  async function bookAll(shard: number, entries: readonly OutboxEntry[]): Promise<void> {
    for (const entry of entries) if (!isReadable(entry)) await park(shard, entry);
    const readable = entries.filter(isReadable);
    if (readable.length === 0) return;
    try {
      await book(shard, readable);
    } catch (error) {
      if (!(error instanceof UnbookableError)) throw error;
      log.warn('A settlement batch was not booked; its records are tried one by one.', {
        shard,
        count: readable.length,
        error,
      });
      await bookOneByOne(shard, readable);
    }
  }

  async function settleShard(shard: number): Promise<number> {
    if (!(await leases.hold(shard, TASK))) {
      lookedBackAt.delete(shard);
      return 0;
    }
    try {
      const entries = await nextEntries(shard);
      await bookAll(shard, entries);
      return entries.length;
    } catch (error) {
      // What was read is not acknowledged: the next round begins with it.
      lookedBackAt.delete(shard);
      throw error;
    }
  }

  return {
    settleShard,
    release: (shard) => leases.release(shard, TASK),
  };
}
