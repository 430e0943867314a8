import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Book } from '../../shared/infra/mongo/accounts/account-repository.ts';
import { RefusedError, UnbookableError } from '../../shared/infra/mongo/accounts/settlement-repository.ts';
import type { SettlementRepository } from '../../shared/infra/mongo/accounts/settlement-repository.ts';
import type { TenantRepository } from '../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../shared/infra/redis/accounts/account-store.ts';
import { isReadable } from '../../shared/infra/redis/requests/outbox.ts';
import type { Outbox, OutboxEntry, ReadableEntry } from '../../shared/infra/redis/requests/outbox.ts';
import { isBadKey } from '../../shared/infra/redis/scripts.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { LookBacks } from './look-backs.ts';

export interface BookRecordsDeps {
  outbox: Pick<Outbox, 'acknowledge' | 'deadLetter'>;
  ledger: SettlementRepository;
  accounts: AccountStore;
  tenants: Pick<TenantRepository, 'elsewhere'>;
  lookBacks: Pick<LookBacks, 'postpone' | 'noteBooked'>;
  clock: Clock;
  /** Publishes booked records. Called before they are acknowledged, so a record may be published twice. */
  publishBooked: (records: readonly SettlementRecord[]) => Promise<void>;
  onBooked: (records: number) => void;
  log: Logger;
}

/** After this many refusals, each when it was tried alone, a record becomes a dead letter. */
const TRIES_MAX = 5;

/**
 * `areOthersBooked`: other records of the shard have been booked since the last look back that found entries. Only then
 * can a refusal without a known cause be put down to the record.
 */
interface BookOptions {
  areOthersBooked: boolean;
}

/**
 * Books outbox entries of a shard and acknowledges them. A record that cannot be booked stays in the outbox until its
 * last try and then becomes a dead letter; an unreadable entry becomes one at once. Throws if a store is unavailable
 * (any error) or refuses everything (RefusedError); entries not booked by then stay in the outbox.
 */
export type BookRecords = (shard: number, entries: readonly OutboxEntry[], options: BookOptions) => Promise<void>;

export function createBookRecords(deps: BookRecordsDeps): BookRecords {
  const { outbox, ledger, accounts, tenants, lookBacks, clock, publishBooked, onBooked, log } = deps;
  /** Refusals so far, by outbox entry. */
  const refusals = new Map<string, number>();

  /**
   * A request that Redis had lost, and its worker has put back on the shard that its tenant has left meanwhile, is charged
   * here. Its tenant is served where MongoDB says, so the book goes there, too. A move that arrives later reads the book anew.
   */
  async function publishElsewhere(shard: number, books: ReadonlyMap<string, Book>): Promise<void> {
    for (const { _id: tenantId, shard: own } of await tenants.elsewhere(shard, [...books.keys()])) {
      const account = books.get(tenantId);
      if (account !== undefined) await accounts.publishBook(own, tenantId, account);
    }
  }

  async function book(shard: number, entries: readonly ReadableEntry[]): Promise<void> {
    const books = await ledger.settle(
      entries.map(({ record }) => record),
      clock.now(),
    );
    for (const [tenantId, account] of books) {
      const settled = entries.flatMap(({ record }) => (record.tenantId === tenantId ? [record.requestId] : []));
      await accounts.publishBook(shard, tenantId, account, settled).catch((cause: unknown) => {
        // A damaged key of one tenant must not block the records of all others.
        throw isBadKey(cause) ? new RefusedError('Redis refused the book of a tenant', { cause }) : cause;
      });
    }
    await publishElsewhere(shard, books);
    await publishBooked(entries.map(({ record }) => record));
    await outbox.acknowledge(shard, entries);
    lookBacks.noteBooked(shard);
    onBooked(entries.length);
  }

  async function deadLetter(shard: number, entry: OutboxEntry): Promise<void> {
    log.error('A settlement record was dead-lettered: it cannot be booked and needs an operator.', {
      shard,
      ...(entry.record === undefined ? {} : { requestId: entry.record.requestId }),
    });
    await outbox.deadLetter(shard, entry);
  }

  /** Counts a refusal of a record that was tried alone. The last one makes it a dead letter. */
  async function refuse(shard: number, entry: ReadableEntry, error: unknown): Promise<void> {
    const { requestId, tenantId } = entry.record;
    lookBacks.postpone(shard);
    const count = (refusals.get(entry.id) ?? 0) + 1;
    refusals.set(entry.id, count);
    log.warn('A settlement record could not be booked.', { shard, requestId, tenantId, count, error });
    if (count < TRIES_MAX) return;
    refusals.delete(entry.id);
    await deadLetter(shard, entry);
  }

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
        await book(shard, [entry]);
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
      await book(shard, readable);
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
