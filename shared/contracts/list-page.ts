import Joi from 'joi';

import { ServiceError } from '../errors/service-error.ts';
import { checkAgainst } from './parse.ts';

/** Uniform lists: docs/spec.md#conventions. */
const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;
const CURSOR_CHARACTERS_MAX = 256;

export interface ListQuery {
  limit: number;
  /** The last row of the page before. */
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

/** Every broken rule gets the one sentence that says what to send. */
function sayAlways(sentence: string): Joi.LanguageMessages {
  return Object.fromEntries(
    ['string.base', 'string.empty', 'string.max', 'string.pattern.base', 'any.only'].map((type) => [
      type,
      `{{#label}} ${sentence}`,
    ]),
  );
}

const AFTER_RULE = 'must be the id of an item of this list';

/** Applies to `after`; ids that callers choose may have any character. */
interface CursorRules {
  charactersMax: number;
  anyCharacter: boolean;
}

export interface ListParameters {
  limit?: string;
  after?: string;
  order?: ListQuery['order'];
}

/** An endpoint adds its own parameters. */
export function createListQuerySchema({ charactersMax, anyCharacter }: CursorRules): Joi.ObjectSchema<ListParameters> {
  const after = Joi.string().max(charactersMax);
  return Joi.object<ListParameters, true>({
    limit: Joi.string()
      .pattern(/^(0{0,2}[1-9]|0?[1-9]\d|100)$/)
      .meta({ reads: { type: 'integer', minimum: 1, maximum: LIMIT_MAX }, default: LIMIT_DEFAULT })
      .description('How many items a page may have.')
      .messages(sayAlways(`must be a whole number from 1 to ${String(LIMIT_MAX)}`)),
    // No id that the service makes contains NUL, and no database accepts it.
    after: (anyCharacter ? after : after.pattern(/^[^\x00]*$/))
      .description('The id of the last item of the page before: `last_id`.')
      .messages(sayAlways(AFTER_RULE)),
    order: Joi.string()
      .valid('asc', 'desc')
      .meta({ default: 'desc' })
      .description('By time of creation: `desc` is newest first.')
      .messages(sayAlways('must be asc or desc')),
  }).unknown();
}

export const listQuerySchema = createListQuerySchema({ charactersMax: CURSOR_CHARACTERS_MAX, anyCharacter: false });

/** For lists with ids of another form. */
export function createListQueryReader(schema: Joi.ObjectSchema<ListParameters>) {
  return (query: unknown): ListQuery => {
    checkAgainst(schema, query);
    const { limit, after, order } = query;
    return {
      limit: limit === undefined ? LIMIT_DEFAULT : Number(limit),
      order: order ?? 'desc',
      ...(after === undefined ? {} : { after }),
    };
  };
}

/** Throws `invalid_request` that names the parameter. */
export const parseListQuery = createListQueryReader(listQuerySchema);

/** For an `after` that names nothing in the list. */
export function unknownCursor(): ServiceError {
  return new ServiceError('invalid_request', `\`after\` ${AFTER_RULE}.`, { param: 'after' });
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

/** For a list that is complete in memory; `rows` are in the order of `asc`. */
export function pageOf<Row>(rows: readonly Row[], query: ListQuery, idOf: (row: Row) => string): Row[] {
  const ordered = query.order === 'asc' ? [...rows] : rows.toReversed();
  if (query.after === undefined) return ordered.slice(0, query.limit + 1);
  const index = ordered.findIndex((row) => idOf(row) === query.after);
  if (index === -1) throw unknownCursor();
  return ordered.slice(index + 1, index + 2 + query.limit);
}
