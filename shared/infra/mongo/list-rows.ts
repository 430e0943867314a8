import type { Model, QueryFilter } from 'mongoose';

import { unknownCursor } from '../../contracts/list-page.ts';
import type { ListQuery } from '../../contracts/list-page.ts';

/**
 * A page of rows by time of creation, one row more than the limit. `filter` holds checked literals only.
 * Throws `invalid_request` when `after` names no row of this list.
 */
export async function listRows<Row extends { _id: string; createdAt: number }>(
  rows: Model<Row>,
  filter: Readonly<Record<string, string>>,
  { limit, after, order }: ListQuery,
): Promise<Row[]> {
  const place = after === undefined ? {} : await placeAfter(rows, filter, after, order);
  const direction = order === 'asc' ? 1 : -1;
  const found: unknown = await rows
    .find(filterOf<Row>({ ...filter, ...place }))
    .sort({ createdAt: direction, _id: direction })
    .limit(limit + 1)
    .lean();
  // lean() of a generic model has a type that TypeScript cannot resolve to the row it is.
  return found as Row[];
}

async function placeAfter<Row extends { _id: string; createdAt: number }>(
  rows: Model<Row>,
  filter: Readonly<Record<string, string>>,
  after: string,
  order: 'asc' | 'desc',
): Promise<object> {
  const found: unknown = await rows.findOne(filterOf<Row>({ ...filter, _id: after })).lean();
  if (found === null) throw unknownCursor();
  // As above.
  const { createdAt } = found as Row;
  const beyond = order === 'asc' ? '$gt' : '$lt';
  return { $or: [{ createdAt: { [beyond]: createdAt } }, { createdAt, _id: { [beyond]: after } }] };
}

/** mongoose cannot check a filter against a generic row; `strictQuery: 'throw'` does when it runs. */
function filterOf<Row>(filter: object): QueryFilter<Row> {
  return filter;
}
