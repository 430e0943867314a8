import type { Model } from 'mongoose';

import type { SearchedSpace } from '../../contracts/space.ts';
import { filterOf, inSpace } from '../collection.ts';
import type { RowFilter } from '../collection.ts';

/** So many rows fit into a call's time limit. */
export const ERASE_AT_ONCE = 200;

/** In the order of ids; rows of a page may be changed meanwhile. No `fields`: all. */
export async function* pagesOf<Row extends { _id: string }>(
  rows: Model<Row>,
  filter: RowFilter<Row>,
  fields: Readonly<Record<string, 1>> = {},
): AsyncGenerator<Row[]> {
  for (let after = ''; ;) {
    const query = rows.find(filterOf<Row>({ ...filter, _id: { $gt: after } }), fields);
    // lean() of a generic model has a type that TypeScript cannot resolve to the row it is.
    const page = (await query.sort({ _id: 1 }).limit(ERASE_AT_ONCE).lean()) as unknown as Row[];
    if (page.length > 0) yield page;
    after = page.at(-1)?._id ?? '';
    if (page.length < ERASE_AT_ONCE) return;
  }
}

/**
 * Deletes matching rows page by page; `visit` sees the named fields first: all rows may exceed memory. Safe to repeat:
 * rows that were visited but not deleted are visited again. Returns the number of deleted rows.
 */
export async function deleteInPages<Row>(
  rows: Model<Row>,
  filter: RowFilter<Row>,
  fields: Readonly<Record<string, 1>>,
  visit: (page: Row[]) => Promise<void> = () => Promise.resolve(),
): Promise<number> {
  for (let deleted = 0; ;) {
    // The cast is safe for the same reason as above.
    const page = (await rows.find(filterOf<Row>(filter), fields).limit(ERASE_AT_ONCE).lean()) as unknown as Row[];
    if (page.length === 0) return deleted;
    await visit(page);
    const ids = page.map((row) => (row as { _id: unknown })._id);
    const { deletedCount } = await rows.deleteMany(filterOf<Row>({ ...filter, _id: { $in: ids } }));
    deleted += deletedCount;
  }
}

/** Each once, by an index on tenant, the fields of `more`, and entity. */
export async function* entitiesIn<Row>(
  rows: Model<Row>,
  space: SearchedSpace,
  more: RowFilter<Row> = {},
): AsyncGenerator<string> {
  for (let after = ''; ;) {
    const filter = filterOf<Row>({ ...inSpace(space), ...more, entityId: { $gt: after } });
    const next: unknown = await rows.findOne(filter, { entityId: 1 }).sort({ entityId: 1 }).lean();
    if (next === null) return;
    // The filter is on this field: it is there, and a text.
    after = (next as { entityId: string }).entityId;
    yield after;
  }
}
