import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import type { SettlementRepository } from '../../shared/infra/mongo/settlement-repository.ts';
import type { AccountStore } from '../../shared/infra/redis/account-store.ts';
import type { LeaderLease } from '../../shared/infra/redis/leader-lease.ts';
import type { Outbox, OutboxEntry } from '../../shared/infra/redis/outbox.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';

export interface SettleDeps {
  outbox: Outbox;
  ledger: SettlementRepository;
  accounts: AccountStore;
  leases: LeaderLease;
  clock: Clock;
  onSettled: (count: number) => void;
  log: Logger;
}

const BATCH = 200;
const TASK = 'settle';
/** A record that fails alone so often will not succeed by itself. */
const TRIES_MAX = 5;

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
export function createSettler({ outbox, ledger, accounts, leases, clock, onSettled, log }: SettleDeps): Settler {
  const tries = new Map<string, number>();
  /** Shards whose unacknowledged entries this leader has been through. */
  const caughtUp = new Set<number>();

  async function book(shard: number, entries: readonly Readable[]): Promise<void> {
    const books = await ledger.settle(
      entries.map(({ record }) => record),
      clock.now(),
    );
    for (const [tenantId, account] of books) {
      const settled = entries.flatMap(({ record }) => (record.tenantId === tenantId ? [record.requestId] : []));
      await accounts.publishBook(shard, tenantId, account, settled);
    }
    await outbox.acknowledge(
      shard,
      entries.map(({ id }) => id),
    );
    onSettled(entries.length);
  }

  async function park(shard: number, entry: OutboxEntry): Promise<void> {
    log.error('A settlement record was parked: it cannot be booked and needs an operator.', {
      shard,
      ...(entry.record === undefined ? {} : { requestId: entry.record.requestId }),
    });
    await outbox.park(shard, entry);
  }

  /** One bad record must not hold up the rest. */
  async function bookOneByOne(shard: number, entries: readonly Readable[]): Promise<void> {
    for (const entry of entries) {
      try {
        await book(shard, [entry]);
        tries.delete(entry.id);
      } catch (error) {
        const count = (tries.get(entry.id) ?? 0) + 1;
        tries.set(entry.id, count);
        caughtUp.delete(shard);
        log.warn('A settlement record could not be booked.', {
          shard,
          requestId: entry.record.requestId,
          attempt: count,
          error,
        });
        if (count < TRIES_MAX) throw error;
        tries.delete(entry.id);
        await park(shard, entry);
      }
    }
  }

  async function settleShard(shard: number): Promise<number> {
    if (!(await leases.hold(shard, TASK))) {
      caughtUp.delete(shard);
      return 0;
    }
    const from = caughtUp.has(shard) ? 'new' : 'redelivered';
    const entries = await outbox.read(shard, from, BATCH);
    if (from === 'redelivered' && entries.length === 0) {
      caughtUp.add(shard);
      return settleShard(shard);
    }
    for (const entry of entries) if (!isReadable(entry)) await park(shard, entry);
    const readable = entries.filter(isReadable);
    if (readable.length === 0) return entries.length;
    try {
      await book(shard, readable);
    } catch (error) {
      caughtUp.delete(shard);
      log.warn('A settlement batch was not booked; its records are tried one by one.', {
        shard,
        count: readable.length,
        error,
      });
      await bookOneByOne(shard, readable);
    }
    return entries.length;
  }

  return {
    settleShard,
    release: (shard) => leases.release(shard, TASK),
  };
}
