/**
 * Tells operators how requests ended and which were refused: times, provider calls, tokens, price and cost; never text,
 * nor the entity.
 *
 * - A worker notes requests that it runs, an ingress its refusals of known keys, and either one what it ends without a
 *   run (`OnEarlyEnd`). A process gathers rows for up to a second and writes them in one call; one that is killed loses
 *   them: the log explains, the ledger charges.
 * - One client can cause thousands of refusals, so they are counted by key, code and minute; only a minute's first few
 *   have a row, under the id that the caller was given.
 * - While MongoDB is away, rows are held up to a bound; others are dropped.
 * - `createdAt`, whose index the lists need anyway, finds old rows: a TTL index would cost every request a third of its
 *   row.
 */
import type { Connection } from 'mongoose';

import type { Tier } from '../../contracts/chat-request.ts';
import type { AttemptTrace, FinishReason } from '../../contracts/events.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import type { OnEarlyEnd, Spend } from '../../contracts/settlement.ts';
import type { ErrorCode } from '../../errors/codes.ts';
import { repeat } from '../../lifecycle/clock.ts';
import type { Clock } from '../../lifecycle/clock.ts';
import type { Closer } from '../../lifecycle/closer.ts';
import type { Logger } from '../../logging/logger.ts';
import { collection, inSpace, listRows, spaceFields } from '../collection.ts';
import type { RowOfSpace } from '../collection.ts';
import type { SearchedSpace, Space } from '../../contracts/space.ts';
import { isDuplicateKey } from '../connection.ts';

export const LOGGED_STATUSES = ['completed', 'failed', 'cancelled', 'refused'] as const;

/** Times are milliseconds since the epoch. */
export interface RequestLogRow extends RowOfSpace {
  _id: string;
  keyId: string;
  /** `chat`, `chat.stream` or `batch`; a refusal has method and path. */
  endpoint: string;
  status: (typeof LOGGED_STATUSES)[number];
  /** Acceptance or refusal. */
  createdAt: number;
  code?: ErrorCode;
  /** In the words of `failureOf`. */
  reason?: string;
  tier?: Tier;
  startedAt?: number;
  moderatedAt?: number;
  verdict?: string;
  firstTokenAt?: number;
  finishedAt?: number;
  attempts?: AttemptTrace[];
  provider?: string;
  model?: string;
  finishReason?: FinishReason;
  promptTokens?: number;
  completionTokens?: number;
  estimated?: boolean;
  costMicro?: number;
  spend?: Spend;
}

export const requestLogModel = collection<RequestLogRow>('request_log', [
  [{ createdAt: -1 }],
  [{ tenantId: 1, createdAt: -1 }],
]);

/** Refusals of a key with one code in one minute, which begins at `createdAt`. */
export interface RefusalCountRow extends RowOfSpace {
  _id: string;
  keyId: string;
  code: ErrorCode;
  createdAt: number;
  count: number;
}

export const refusalCountModel = collection<RefusalCountRow>('refusal_counts', [
  [{ createdAt: -1 }],
  [{ tenantId: 1, createdAt: -1 }],
]);

/** `from` and `before` bound the time of creation, in milliseconds since the epoch. */
export interface LogFilter {
  tenantId?: string;
  space?: SearchedSpace;
  keyId?: string;
  code?: ErrorCode;
  status?: RequestLogRow['status'];
  tier?: Tier;
  provider?: string;
  from?: number;
  before?: number;
}

function filterOf({ space, from, before, ...equal }: LogFilter) {
  const range = { ...(from === undefined ? {} : { $gte: from }), ...(before === undefined ? {} : { $lt: before }) };
  const within = space === undefined ? {} : inSpace(space);
  return { ...equal, ...within, ...(Object.keys(range).length === 0 ? {} : { createdAt: range }) };
}

export type RequestLog = ReturnType<typeof createRequestLog>;

export function createRequestLog(connection: Connection) {
  const rows = requestLogModel(connection);
  const refusals = refusalCountModel(connection);
  return {
    async find(requestId: string): Promise<RequestLogRow | undefined> {
      return (await rows.findById(requestId).lean()) ?? undefined;
    },

    list: (filter: LogFilter, query: ListQuery): Promise<RequestLogRow[]> => listRows(rows, filterOf(filter), query),

    listRefusals: (filter: LogFilter, query: ListQuery): Promise<RefusalCountRow[]> =>
      listRows(refusals, filterOf(filter), query),
  };
}

const FLUSH_MS = 1_000;
const ROWS_AT_ONCE = 500;
/** Held while MongoDB is away: a few megabytes. */
const HELD_MAX = 10_000;
const COUNTS_MAX = 2_000;
/** Rows per minute for each key and code of refusals, in each process. */
const SAMPLES = 5;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 3_600_000;

export interface Refusal extends Space {
  requestId: string;
  keyId: string;
  code: ErrorCode;
  endpoint: string;
}

interface MinuteCount extends Omit<RefusalCountRow, '_id'> {
  /** This many of the count are written. */
  written: number;
}

/** Has the running minute, and earlier ones until they are written. */
function createRefusalCounts() {
  const counts = new Map<string, MinuteCount>();
  return {
    /** Returns the refusal's number for its key, code and minute, from 1. Undefined: there are too many. */
    add({ tenantId, mode, keyId, code }: Refusal, now: number): number | undefined {
      const createdAt = now - (now % MINUTE_MS);
      const id = `${keyId}:${code}:${createdAt}`;
      const known = counts.get(id);
      if (known === undefined && counts.size >= COUNTS_MAX) return undefined;
      const counted = known ?? { ...spaceFields({ tenantId, mode }), keyId, code, createdAt, count: 0, written: 0 };
      counted.count += 1;
      counts.set(id, counted);
      return counted.count;
    },
    /** Calls `write` with counts since its last success. */
    async flush(now: number, write: (added: [string, MinuteCount][]) => Promise<unknown>): Promise<void> {
      const added = [...counts].flatMap(([id, { written, ...of }]): [string, MinuteCount][] =>
        of.count === written ? [] : [[id, { ...of, written }]],
      );
      if (added.length > 0) await write(added);
      for (const [id, { count: until }] of added) Object.assign(counts.get(id) ?? {}, { written: until });
      for (const [id, { createdAt, count: all, written }] of counts)
        if (createdAt + MINUTE_MS <= now && all === written) counts.delete(id);
    },
  };
}

interface HeldRow {
  row: RequestLogRow;
  isGuess: true | undefined;
}

/** Each call may be repeated. */
function createWriter(connection: Connection) {
  const rows = requestLogModel(connection).collection;
  const refusals = refusalCountModel(connection);
  /** A replay, or a repeated write, finds its own row: the later one stays, but a guess gives way. */
  async function insert(page: readonly HeldRow[]): Promise<void> {
    try {
      // mongoose's documents would cost more than the rest; the driver's type of a row has another `_id`.
      await rows.insertMany(page.map(({ row }) => row) as object[], { ordered: false });
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      const known = page.filter(({ isGuess }) => isGuess !== true);
      const operations = known.map(({ row }) => ({
        replaceOne: { filter: { _id: row._id as never }, replacement: row, upsert: true },
      }));
      if (operations.length > 0) await rows.bulkWrite(operations, { ordered: false });
    }
  }

  return {
    async drain(held: HeldRow[]): Promise<void> {
      for (;;) {
        const page = held.slice(0, ROWS_AT_ONCE);
        if (page.length === 0) return;
        await insert(page);
        held.splice(0, page.length);
      }
    },

    async addCounts(added: [string, MinuteCount][]): Promise<void> {
      const operations = added.map(([_id, { count: all, written, ...row }]) => ({
        updateOne: { filter: { _id }, update: { $inc: { count: all - written }, $setOnInsert: row }, upsert: true },
      }));
      await refusals.bulkWrite(operations, { ordered: false });
    },

    async deleteBefore(time: number): Promise<void> {
      for (const log of [rows, refusals]) await log.deleteMany({ createdAt: { $lt: time } });
    },
  };
}

export type RequestRecorder = ReturnType<typeof openRequestRecorder>;

const CANCELLED = { status: 'cancelled', finishReason: 'cancelled' } as const;
const FAILED = { status: 'failed', finishReason: 'error' } as const;

function rowOfEarlyEnd(...[request, { code, reason }]: Parameters<OnEarlyEnd>): RequestLogRow {
  const { requestId: _id, keyId, endpoint, tier, acceptedAt: createdAt } = request;
  const end = code === undefined ? CANCELLED : { ...FAILED, code };
  return { _id, ...spaceFields(request), keyId, endpoint, tier, createdAt, reason, ...end };
}

/** Only writes. `keptDays` 0: nothing is noted. */
export function openRequestRecorder(
  connection: Connection,
  { keptDays, clock, closer, log }: { keptDays: number; clock: Clock; closer: Closer; log: Logger },
) {
  const writer = createWriter(connection);
  const counts = createRefusalCounts();
  const held: HeldRow[] = [];
  let dropped = 0;
  let nextDeletion = 0;

  function note(row: RequestLogRow, isGuess?: true): void {
    if (keptDays === 0) return;
    if (held.length >= HELD_MAX) dropped += 1;
    else held.push({ row, isGuess });
  }

  async function flush(): Promise<void> {
    await writer.drain(held);
    if (dropped > 0) log.warn('Ended requests are missing in the list of requests.', { count: dropped });
    dropped = 0;
    const now = clock.now();
    await counts.flush(now, writer.addCounts);
    if (now < nextDeletion) return;
    await writer.deleteBefore(now - keptDays * DAY_MS);
    nextDeletion = now + MINUTE_MS;
  }

  const onFault = (error: unknown) => {
    log.warn('Ended requests could not be listed; that is tried again.', { error });
  };
  const flushing = repeat(flush, () => FLUSH_MS, onFault);
  closer.defer('request log', () => flushing.stop().then(flush));

  return {
    note,
    endEarly: ((request, how) => {
      note({ ...rowOfEarlyEnd(request, how), finishedAt: clock.now() }, how.isGuess);
    }) satisfies OnEarlyEnd,
    /** Only the first refusals of a key, code and minute have rows. */
    refuse(refusal: Refusal): void {
      if (keptDays === 0) return;
      const now = clock.now();
      const place = counts.add(refusal, now);
      if (place === undefined || place > SAMPLES) return;
      const { requestId: _id, tenantId, mode, keyId, code, endpoint } = refusal;
      note({ _id, ...spaceFields({ tenantId, mode }), keyId, endpoint, status: 'refused', createdAt: now, code });
    },
  };
}
