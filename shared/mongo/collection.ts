import { Schema } from 'mongoose';
import type { Connection, IndexDefinition, IndexOptions, Model, QueryFilter, UpdateQuery } from 'mongoose';

import { unknownCursor } from '../contracts/list-page.ts';
import type { ListQuery } from '../contracts/list-page.ts';
import type { KeyMode, SearchedSpace, Space } from '../contracts/space.ts';
import { isDuplicateKey } from './connection.ts';

/** Includes fields within fields. */
type FieldOf<Row> = (keyof Row & string) | `${keyof Row & string}.${string}`;

/**
 * Defines a collection. Rows are what their type says: mongoose casts, fills in and checks only `_id`, and joi checks
 * callers' input before it enters a filter or row. A connection always gets the same model. `ids`: texts from the
 * writer, or generated ObjectIds.
 */
export function collection<Row>(
  storedAs: string,
  indexes: readonly (readonly [keys: Partial<Record<FieldOf<Row>, 1 | -1>>, options?: IndexOptions])[] = [],
  ids: 'given' | 'made' = 'given',
): (connection: Connection) => Model<Row> {
  const options = { collection: storedAs, strict: false, versionKey: false, minimize: false, id: false } as const;
  const schema = new Schema(ids === 'given' ? { _id: String } : {}, options) as Schema<Row>;
  for (const [keys, how] of indexes) schema.index(keys as IndexDefinition, how);
  return (connection) => connection.model<Row>(storedAs, schema);
}

/** MongoDB would store nested undefined fields as null. */
export function definedOf<Fields extends object>(fields: Fields): Fields {
  // Only fields that may be undefined are left out.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}

/**
 * Undefined leaves a field as it is, null takes it away. `nullable`: fields for which null is a value. MongoDB refuses
 * an operator without fields, so an idle one is absent.
 */
export function toFieldUpdate(
  changes: object,
  nullable: ReadonlySet<string> = new Set(),
): { $set?: object; $unset?: object } {
  const given: [string, unknown][] = Object.entries(definedOf(changes));
  const set = given.filter(([name, value]) => value !== null || nullable.has(name));
  const removed = given.filter((entry) => !set.includes(entry)).map(([name]) => [name, 1] as const);
  return {
    ...(set.length === 0 ? {} : { $set: Object.fromEntries(set) }),
    ...(removed.length === 0 ? {} : { $unset: Object.fromEntries(removed) }),
  };
}

/** A duplicate is the same document: an earlier try, whose answer was lost, or another process wrote it. */
export async function insertOnce(insert: Promise<unknown>): Promise<void> {
  try {
    await insert;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}

/**
 * Only test rows store their mode in collections that are older than spaces: earlier rows are live without being
 * rewritten, and a unique index takes an old live row and a new one for the same.
 */
export interface RowOfSpace {
  tenantId: string;
  mode?: KeyMode;
}

/** Only this function knows how a row says its mode. */
export function inSpace({ tenantId, mode }: SearchedSpace): {
  tenantId: string;
  mode?: 'test' | { $in: ('live' | null)[] };
} {
  if (mode === 'any') return { tenantId };
  // `null` matches rows without a mode. With `$ne` or `$exists`, MongoDB's stand-in would read the whole collection.
  return { tenantId, mode: mode === 'test' ? 'test' : { $in: [null, 'live'] } };
}

/** The inverse of `inSpace`, for new rows. */
export function spaceFields({ tenantId, mode }: Space): RowOfSpace {
  return mode === 'test' ? { tenantId, mode } : { tenantId };
}

/** Ignores case. */
export const containing = (part: string) =>
  ({ $regex: part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'), $options: 'i' }) as const;

type ListFilter = Readonly<
  Record<
    string,
    | string
    | null
    | { readonly $exists: boolean }
    | { readonly $in: readonly (string | null)[] }
    | { readonly $gte?: number; readonly $lt?: number }
    | ReturnType<typeof containing>
  >
>;

interface ListOptions {
  /** The field of `after`; `_id` by default. */
  cursor?: string;
  projection?: Readonly<Record<string, 0>>;
}

/** Pages by creation, one row beyond the limit. Throws `invalid_request` if the list has no row `after`. */
export async function listRows<Row extends { createdAt: number }>(
  rows: Model<Row>,
  filter: ListFilter & RowFilter<Row>,
  { limit, after, order }: ListQuery,
  { cursor = '_id', projection = {} }: ListOptions = {},
): Promise<Row[]> {
  const place = after === undefined ? {} : await placeAfter(rows, { ...filter, [cursor]: after }, order);
  const direction = order === 'asc' ? 1 : -1;
  const found: unknown = await rows
    .find(filterOf<Row>({ ...filter, ...place }), projection)
    .sort({ createdAt: direction, _id: direction })
    .limit(limit + 1)
    .lean();
  // lean() of a generic model has a type that TypeScript cannot resolve to the row it is.
  return found as Row[];
}

async function placeAfter<Row extends { createdAt: number }>(
  rows: Model<Row>,
  filter: ListFilter & RowFilter<Row>,
  order: 'asc' | 'desc',
): Promise<object> {
  const found: unknown = await rows.findOne(filterOf<Row>(filter), { createdAt: 1 }).lean();
  if (found === null) throw unknownCursor();
  // The cast is safe as above; MongoDB adds the `_id`.
  const { createdAt, _id } = found as Row & { _id: unknown };
  const beyond = order === 'asc' ? '$gt' : '$lt';
  return { $or: [{ createdAt: { [beyond]: createdAt } }, { createdAt, _id: { [beyond]: _id } }] };
}

export type RowFilter<Row> = Partial<Record<FieldOf<Row> | '_id' | '$or' | '$and', unknown>>;

/** mongoose cannot check a filter against a generic row. */
export function filterOf<Row>(filter: object): QueryFilter<Row> {
  return filter;
}

/** `claim` is the fence: it rises with every claim. */
export interface ClaimedRow {
  _id: string;
  tenantId: string;
  claim: number;
}

/** Serves durable work (workers/queue/durable-work.ts): claims rows, and writes under a claim. */
export function createClaims<Row extends ClaimedRow>(rows: Model<Row>) {
  return {
    /** Claims the first row that the filter finds. `held`: what says until when. Undefined: there is none. */
    async claim(filter: RowFilter<Row>, held: Partial<Row>, first: Record<string, 1> = {}): Promise<Row | undefined> {
      const change: UpdateQuery<object> = { $set: held, $inc: { claim: 1 } };
      const settings = { returnDocument: 'after', sort: first } as const;
      const taken: unknown = await rows
        .findOneAndUpdate(filterOf<Row>(filter), change as UpdateQuery<Row>, settings)
        .lean();
      // The cast is safe for the reason given in listRows.
      return (taken as Row | null) ?? undefined;
    },

    /** False: the row was claimed again, is gone, or is not as `also` says. */
    async write({ _id, tenantId, claim }: ClaimedRow, change: object, also: RowFilter<Row> = {}): Promise<boolean> {
      const held = filterOf<Row>({ _id, tenantId, claim, ...also });
      return (await rows.updateOne(held, change)).matchedCount === 1;
    },
  };
}
