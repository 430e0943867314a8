import { Schema } from 'mongoose';
import type { Connection, IndexDefinition, IndexOptions, Model, QueryFilter, UpdateQuery } from 'mongoose';

import { unknownCursor } from '../contracts/list-page.ts';
import type { ListQuery } from '../contracts/list-page.ts';
import type { KeyMode, SearchedSpace, Space } from '../contracts/space.ts';
import { isDuplicateKey } from './connection.ts';

/** A field of a row, or one within it. */
type FieldOf<Row> = (keyof Row & string) | `${keyof Row & string}.${string}`;

/**
 * Defines a collection. Its rows are what their type says: mongoose casts, fills in and checks nothing but `_id`, and joi
 * checks what comes from a caller before a filter or a row is made of it. The result gives the model of a connection: the
 * same one, however often it is asked for. `ids`: texts that the writer gives, or ObjectIds that are made.
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

/** The fields that have a value: MongoDB would store those within a row that are undefined as null. */
export function definedOf<Fields extends object>(fields: Fields): Fields {
  // Only fields that may be undefined are left out.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}

/**
 * The update that changes fields of a row: undefined leaves a field as it is, null takes it away. `nullable`: the fields
 * for which null is a value. MongoDB refuses an operator without fields, so one that has nothing to do is absent.
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

/** A duplicate of what is inserted is the same: an earlier try wrote it, whose answer was lost, or another process. */
export async function insertOnce(insert: Promise<unknown>): Promise<void> {
  try {
    await insert;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}

/**
 * The mode of a row that belongs to one space. Only test rows have it in collections that are older than spaces: what
 * was stored before is live without being rewritten, and a unique index takes an old live row and a new one for the same.
 */
export interface RowOfSpace {
  tenantId: string;
  mode?: KeyMode;
}

/** The filter of a space's rows, and the only place that knows how a row says its mode. */
export function inSpace({ tenantId, mode }: SearchedSpace): {
  tenantId: string;
  mode?: 'test' | { $in: ('live' | null)[] };
} {
  if (mode === 'any') return { tenantId };
  // `null` is what has no mode. By `$ne` or `$exists` the stand-in for MongoDB would read the whole collection.
  return { tenantId, mode: mode === 'test' ? 'test' : { $in: [null, 'live'] } };
}

/** Picks the fields of its space that a new row stores. */
export function spaceFields({ tenantId, mode }: Space): RowOfSpace {
  return mode === 'test' ? { tenantId, mode } : { tenantId };
}

/** Matches fields with this text in them, in small or capital letters. */
export const containing = (part: string) =>
  ({ $regex: part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'), $options: 'i' }) as const;

/** Checked literals only. */
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
  /** The field that `after` names; `_id` by default. */
  cursor?: string;
  /** Fields that are left out. */
  projection?: Readonly<Record<string, 0>>;
}

/**
 * A page of rows by time of creation, one row more than the limit.
 * Throws `invalid_request` when `after` names no row of this list.
 */
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

/** A filter of rows: literals that are checked, whose fields are those of the row. */
export type RowFilter<Row> = Partial<Record<FieldOf<Row> | '_id' | '$or' | '$and', unknown>>;

/** mongoose cannot check a filter against a generic row. */
export function filterOf<Row>(filter: object): QueryFilter<Row> {
  return filter;
}

/** A row of durable work. `claim` is its fence: it rises with every claim. */
export interface ClaimedRow {
  _id: string;
  tenantId: string;
  claim: number;
}

/** Claims rows of durable work (workers/queue/durable-work.ts), and writes to them under a claim. */
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

    /** False: the row has been claimed again since, or is not there, or not as `also` says. */
    async write({ _id, tenantId, claim }: ClaimedRow, change: object, also: RowFilter<Row> = {}): Promise<boolean> {
      const held = filterOf<Row>({ _id, tenantId, claim, ...also });
      return (await rows.updateOne(held, change)).matchedCount === 1;
    },
  };
}
