/**
 * The door of settlement: moves charges from Redis into the ledger, each exactly once.
 *
 * - `finish` puts a settlement record into the shard's outbox. The shard's leader, by a lease of 5 s, books up to 300
 *   in one transaction: entries, balances and usage. It leaves out those that the ledger knows, and an entry's id is
 *   made of the request's, so MongoDB refuses a second one.
 * - The new books go to Redis, and the records are acknowledged. One whose charge is pending again, because Redis lost
 *   that book, stays and is booked once more.
 * - Every step may be repeated: two leaders, a second delivery or a death between two steps change nothing.
 * - While MongoDB is away, full or read-only, records wait, and the log and `parley_settlement_blocked_total` say so. A
 *   refused record is tried alone; after five refusals that are its own fault it is a dead letter, tried again hourly
 *   and on request.
 *
 * sweep.ts ends requests that nobody else ends, recover-lost.ts replays those that Redis lost, and reconcile.ts
 * compares everything with the ledger, which is right (docs/decisions/0009-holds-and-ledger.md). `test/model` has the
 * rules of the scripts as pure transitions, and explores crashes, lost replies and double deliveries: change it first.
 */
import { RefusedError, UnbookableError } from '../../shared/mongo/accounts/settlement-repository.ts';
import type { SettlementRepository } from '../../shared/mongo/accounts/settlement-repository.ts';
import type { AccountRepository, LedgerBalance } from '../../shared/mongo/accounts/account-repository.ts';
import type { LeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import type { AccountStore } from '../../shared/redis/stores/account-store.ts';
import { isReadable } from '../../shared/requests/outbox.ts';
import type { Outbox, OutboxEntry, ReadableEntry } from '../../shared/requests/outbox.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { TenantRepository } from '../../shared/mongo/tenants/tenant-repository.ts';
import { isBadKey } from '../../shared/redis/scripts.ts';
import { inTime } from '../../shared/redis/time-limits.ts';

const RETRY_MS = 5_000;

/**
 * Decides when the leader rereads (retries) a shard's unacknowledged entries, whose booking failed or was interrupted,
 * here or under an earlier leader. In between it reads only new ones, so that a bad record holds up no other.
 */
type PendingRetries = ReturnType<typeof createPendingRetries>;

function createPendingRetries(clock: Clock) {
  /** By shard; a shard without an entry is due at once. */
  const retriedAt = new Map<number, number>();
  const shardsWithBooked = new Set<number>();
  return {
    isDue: (shard: number): boolean => clock.now() - (retriedAt.get(shard) ?? -Infinity) >= RETRY_MS,
    /** Called when no entry is left, or one that is left was just refused. */
    postpone(shard: number): void {
      retriedAt.set(shard, clock.now());
    },
    /** Called when a booking was interrupted, or another process may have led meanwhile. */
    makeDue(shard: number): void {
      retriedAt.delete(shard);
    },
    recordBooked(shard: number): void {
      shardsWithBooked.add(shard);
    },
    /** True if a record was booked since the last call; called at each retry that finds entries. */
    takeBooked: (shard: number): boolean => shardsWithBooked.delete(shard),
  };
}

interface BookRecordsDeps {
  outbox: Outbox;
  ledger: SettlementRepository;
  accounts: AccountStore;
  tenants: Pick<TenantRepository, 'elsewhere'>;
  pendingRetries: PendingRetries;
  clock: Clock;
  /** Publishes booked records. Called before they are acknowledged, so a record may be published twice. */
  publishBooked: (records: readonly SettlementRecord[]) => Promise<void>;
  onBooked: (records: number) => void;
  log: Logger;
}

/** After this many refusals, each when it was tried alone, a record becomes a dead letter. */
const TRIES_MAX = 5;

/**
 * True if other records of the shard were booked since the last retry that found entries: only then can a refusal
 * without a known cause be put down to the record.
 */
interface BookOptions {
  areOthersBooked: boolean;
}

/**
 * Books outbox entries of a shard and acknowledges them. A record that cannot be booked becomes a dead letter after its
 * last try, an unreadable entry at once. Throws if a store is unavailable (any error) or refuses everything
 * (RefusedError); entries not booked by then stay in the outbox.
 */
type BookRecords = (shard: number, entries: readonly OutboxEntry[], options: BookOptions) => Promise<void>;

/**
 * Publishes the ledger balance where MongoDB says that the tenant is served: a request that Redis had lost may be put
 * back, and charged here, on a shard that its tenant has left. A move that arrives later reads the balance anew.
 */
async function publishElsewhere(
  { tenants, accounts }: BookRecordsDeps,
  shard: number,
  books: ReadonlyMap<string, LedgerBalance>,
): Promise<void> {
  for (const { _id: tenantId, shard: own } of await tenants.elsewhere(shard, [...books.keys()])) {
    const account = books.get(tenantId);
    if (account !== undefined) await accounts.publishBalance(own, tenantId, account);
  }
}

async function bookAll(deps: BookRecordsDeps, shard: number, entries: readonly ReadableEntry[]): Promise<void> {
  const { outbox, ledger, accounts, pendingRetries, clock, publishBooked, onBooked } = deps;
  const books = await ledger.settle(
    entries.map(({ record }) => record),
    clock.now(),
  );
  for (const [tenantId, account] of books) {
    const settled = entries.flatMap(({ record }) => (record.tenantId === tenantId ? [record.requestId] : []));
    await accounts.publishBalance(shard, tenantId, account, settled).catch((cause: unknown) => {
      // A damaged key of one tenant must not block the records of all others.
      throw isBadKey(cause) ? new RefusedError('Redis refused the ledger balance of a tenant', { cause }) : cause;
    });
  }
  await publishElsewhere(deps, shard, books);
  await publishBooked(entries.map(({ record }) => record));
  await outbox.acknowledge(shard, entries);
  pendingRetries.recordBooked(shard);
  onBooked(entries.length);
}

function createRefusals({ outbox, pendingRetries, log }: BookRecordsDeps) {
  const refusals = new Map<string, number>();

  async function deadLetter(shard: number, entry: OutboxEntry): Promise<void> {
    log.error('A settlement record was dead-lettered: it cannot be booked and needs an operator.', {
      shard,
      ...(entry.record === undefined ? {} : { requestId: entry.record.requestId }),
    });
    await outbox.deadLetter(shard, entry);
  }

  /** The last refusal of a record that was tried alone makes it a dead letter. */
  async function refuse(shard: number, entry: ReadableEntry, error: unknown): Promise<void> {
    const { requestId, tenantId } = entry.record;
    pendingRetries.postpone(shard);
    const count = (refusals.get(entry.id) ?? 0) + 1;
    refusals.set(entry.id, count);
    log.warn('A settlement record could not be booked.', { shard, requestId, tenantId, count, error });
    if (count < TRIES_MAX) return;
    refusals.delete(entry.id);
    await deadLetter(shard, entry);
  }

  return { deadLetter, refuse, refusals };
}

function createBookRecords(deps: BookRecordsDeps): BookRecords {
  const { log } = deps;
  const { deadLetter, refuse, refusals } = createRefusals(deps);

  /** Books one record at a time, so that a bad record does not hold up the rest of its batch. */
  async function bookOneByOne(
    shard: number,
    entries: readonly ReadableEntry[],
    { areOthersBooked }: BookOptions,
  ): Promise<void> {
    const refused: { entry: ReadableEntry; error: RefusedError }[] = [];
    let isAnyBooked = areOthersBooked;
    for (const entry of entries) {
      try {
        await bookAll(deps, shard, [entry]);
        refusals.delete(entry.id);
        isAnyBooked = true;
      } catch (error) {
        if (error instanceof UnbookableError) await refuse(shard, entry, error);
        else if (error instanceof RefusedError) refused.push({ entry, error });
        else throw error;
      }
    }
    const [first] = refused;
    if (first === undefined) return;
    if (!isAnyBooked) {
      // If everything is refused, these refusals and all earlier ones say nothing about the records themselves.
      for (const { entry } of refused) refusals.delete(entry.id);
      throw first.error;
    }
    for (const { entry, error } of refused) await refuse(shard, entry, error);
  }

  return async (shard, entries, options) => {
    for (const entry of entries) if (!isReadable(entry)) await deadLetter(shard, entry);
    const readable = entries.filter(isReadable);
    if (readable.length === 0) return;
    try {
      await bookAll(deps, shard, readable);
    } catch (error) {
      if (!(error instanceof UnbookableError || error instanceof RefusedError)) throw error;
      log.warn('A settlement batch was not booked; its records are tried one by one.', {
        shard,
        count: readable.length,
        error,
      });
      await bookOneByOne(shard, readable, options);
    }
  };
}

interface LoadBalanceDeps {
  accounts: AccountRepository;
  accountStore: AccountStore;
  log: Logger;
}

/**
 * Brings a ledger balance to a Redis that has lost it, before a running request is granted more (delivery-store.ts).
 * Never rejects: while MongoDB is away the request goes on, and the next admission or settlement brings it.
 */
export function createLoadBalance({ accounts, accountStore, log }: LoadBalanceDeps) {
  /** All that a tenant runs is put back at once. */
  const underWay = new Map<string, Promise<void>>();

  async function load(shard: number, tenantId: string): Promise<void> {
    const balance = await accounts.read(tenantId);
    if (balance !== undefined) await accountStore.publishBalance(shard, tenantId, balance);
  }

  return (shard: number, tenantId: string): Promise<void> => {
    let loading = underWay.get(tenantId);
    if (loading === undefined) {
      // Not longer: the lease that waits for it is renewed every three seconds.
      loading = inTime(load(shard, tenantId))
        .catch((error: unknown) => {
          log.warn('A ledger balance could not be brought to a Redis that had lost it.', { tenantId, error });
        })
        .finally(() => underWay.delete(tenantId));
      underWay.set(tenantId, loading);
    }
    return loading;
  };
}

export interface SettleEvents {
  'settlement.booked': [records: number];
  'settlement.blocked': [reason: BlockReason];
}

export interface SettleDeps extends Omit<BookRecordsDeps, 'outbox' | 'pendingRetries' | 'onBooked'> {
  outbox: Outbox;
  leases: LeaderLease;
  events: Emitter<SettleEvents>;
}

/** A store is unavailable, or every record is refused. */
export type BlockReason = 'unavailable' | 'refused';

export const SETTLE_BATCH = 300;
const TASK = 'settle';
/** A lasting failure is logged as an error this often. */
const ALARM_MS = 30_000;

export type Settler = ReturnType<typeof createSettler>;

/** While settlement is blocked, no record becomes a dead letter. */
function createAlarm({ clock, events, log }: SettleDeps) {
  /** A shard without an entry is not blocked. */
  const raisedAt = new Map<number, number>();
  return {
    raise(shard: number, error: unknown): void {
      events.emit('settlement.blocked', error instanceof RefusedError ? 'refused' : 'unavailable');
      const now = clock.now();
      if (now - (raisedAt.get(shard) ?? -Infinity) < ALARM_MS) return;
      raisedAt.set(shard, now);
      log.error('Settlement is blocked: no record is booked, and all of them wait.', { shard, error });
    },
    end: (shard: number): void => void raisedAt.delete(shard),
  };
}

export function createSettler(deps: SettleDeps) {
  const { outbox, leases, clock, events } = deps;
  const pendingRetries = createPendingRetries(clock);
  const bookRecords = createBookRecords({
    ...deps,
    pendingRetries,
    onBooked: (records) => {
      events.emit('settlement.booked', records);
    },
  });
  const alarm = createAlarm(deps);

  async function nextEntries(shard: number): Promise<{ entries: OutboxEntry[]; isRetry: boolean }> {
    if (pendingRetries.isDue(shard)) {
      const unacknowledged = await outbox.read(shard, 'redelivered', SETTLE_BATCH);
      if (unacknowledged.length < SETTLE_BATCH) pendingRetries.postpone(shard);
      if (unacknowledged.length > 0) return { entries: unacknowledged, isRetry: true };
    }
    return { entries: await outbox.read(shard, 'new', SETTLE_BATCH), isRetry: false };
  }

  return {
    /** Returns the number of entries it read; 0 where another process leads. */
    async settleShard(shard: number): Promise<number> {
      if (!(await leases.hold(shard, TASK))) {
        pendingRetries.makeDue(shard);
        return 0;
      }
      try {
        const { entries, isRetry } = await nextEntries(shard);
        await bookRecords(shard, entries, { areOthersBooked: isRetry && pendingRetries.takeBooked(shard) });
        if (entries.length > 0) alarm.end(shard);
        return entries.length;
      } catch (error) {
        alarm.raise(shard, error);
        // The entries read stay unacknowledged. After an interruption, the next round begins with them. After a
        // refusal, one of the records may be the cause, so new ones go first.
        if (error instanceof RefusedError) pendingRetries.postpone(shard);
        else pendingRetries.makeDue(shard);
        throw error;
      }
    },

    release: (shard: number): Promise<void> => leases.release(shard, TASK),
  };
}
