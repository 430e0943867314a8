import { ServiceError } from '../errors/service-error.ts';

/** Uniform lists: contract.md section 2. */
const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;
const CURSOR_CHARACTERS_MAX = 256;

export interface ListQuery {
  limit: number;
  /** The id of the last row of the page before. */
  after?: string;
  /** By time of creation; `desc` is newest first. */
  order: 'asc' | 'desc';
}

export interface ListPage<Resource> {
  object: 'list';
  data: Resource[];
  has_more: boolean;
  first_id: string | null;
  last_id: string | null;
}

function refuse(param: string, rule: string): never {
  throw new ServiceError('invalid_request', `\`${param}\` ${rule}.`, { param });
}

function parseLimit(value: unknown): number {
  if (value === undefined) return LIMIT_DEFAULT;
  const limit = typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : 0;
  return limit >= 1 && limit <= LIMIT_MAX ? limit : refuse('limit', `must be a whole number from 1 to ${LIMIT_MAX}`);
}

function parseOrder(value: unknown): 'asc' | 'desc' {
  if (value === undefined) return 'desc';
  return value === 'asc' || value === 'desc' ? value : refuse('order', 'must be asc or desc');
}

/** What an `after` may look like; ids that callers choose may have any character. */
interface CursorRules {
  charactersMax: number;
  anyCharacter: boolean;
}

/** Reads `limit`, `after` and `order` of a parsed query string; throws `invalid_request` that names the parameter. */
export function parseListQuery(
  query: Readonly<Record<string, unknown>>,
  cursor: CursorRules = { charactersMax: CURSOR_CHARACTERS_MAX, anyCharacter: false },
): ListQuery {
  const limit = parseLimit(query['limit']);
  const order = parseOrder(query['order']);
  const after = query['after'];
  if (after === undefined) return { limit, order };
  if (typeof after !== 'string' || after === '' || after.length > cursor.charactersMax) throw unknownCursor();
  if (!cursor.anyCharacter && after.includes('\0')) throw unknownCursor();
  return { limit, order, after };
}

/** What a repository throws when `after` names nothing in the list. */
export function unknownCursor(): ServiceError {
  return new ServiceError('invalid_request', '`after` must be the id of an item of this list.', { param: 'after' });
}

/** `rows` holds up to one more than the limit: the extra one says that there are more. */
export function toListPage<Row, Resource extends { id: string }>(
  rows: readonly Row[],
  limit: number,
  toResource: (row: Row) => Resource,
): ListPage<Resource> {
  const data = rows.slice(0, limit).map(toResource);
  return {
    object: 'list',
    data,
    has_more: rows.length > limit,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  };
}

/** A page of a list that is whole in memory, in the order that `asc` asks for. */
export function pageOf<Row>(rows: readonly Row[], query: ListQuery, idOf: (row: Row) => string): Row[] {
  const ordered = query.order === 'asc' ? [...rows] : rows.toReversed();
  if (query.after === undefined) return ordered.slice(0, query.limit + 1);
  const index = ordered.findIndex((row) => idOf(row) === query.after);
  if (index === -1) throw unknownCursor();
  return ordered.slice(index + 1, index + 2 + query.limit);
}
