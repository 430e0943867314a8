import type { Model, QueryFilter } from 'mongoose';

import { unknownCursor } from '../../contracts/list-page.ts';
import type { ListQuery } from '../../contracts/list-page.ts';

/** Checked literals only. */
type ListFilter = Readonly<
  Record<string, string | null | { readonly $exists: boolean } | { readonly $in: readonly (string | null)[] }>
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
  filter: ListFilter,
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
  filter: ListFilter,
  order: 'asc' | 'desc',
): Promise<object> {
  const found: unknown = await rows.findOne(filterOf<Row>(filter), { createdAt: 1 }).lean();
  if (found === null) throw unknownCursor();
  // As above; MongoDB adds the `_id`.
  const { createdAt, _id } = found as Row & { _id: unknown };
  const beyond = order === 'asc' ? '$gt' : '$lt';
  return { $or: [{ createdAt: { [beyond]: createdAt } }, { createdAt, _id: { [beyond]: _id } }] };
}

/** mongoose cannot check a filter against a generic row; `strictQuery: 'throw'` does when it runs. */
function filterOf<Row>(filter: object): QueryFilter<Row> {
  return filter;
}
