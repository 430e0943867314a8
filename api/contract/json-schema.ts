import Joi from 'joi';

import { numberBetween, wholeNumberBetween } from '../../shared/contracts/chat-request.ts';
import { ERRORS } from '../../shared/errors/codes.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';

/** A schema's own name and content, attached to the reference that stands for it. */
const NAMED = Symbol('named schema');

/** The type of what fits a schema; it exists for the compiler only. */
declare const VALUE: unique symbol;

/** A schema of JSON Schema 2020-12, as used by OpenAPI 3.1. */
export type JsonSchema<Value = unknown> = Readonly<Record<string, unknown>> & {
  readonly [NAMED]?: NamedSchema;
  readonly [VALUE]?: Value;
};
type ValueOf<Schema> = Schema extends JsonSchema<infer Value> ? Value : never;

interface NamedSchema {
  name: string;
  schema: JsonSchema;
}

/** A reference that carries the schema along: whatever refers to it brings it into the document's components. */
export function named<Value>(name: string, schema: JsonSchema<Value>): JsonSchema<Value> {
  return { $ref: `#/components/schemas/${name}`, [NAMED]: { name, schema } };
}

/** All schemas that a value refers to, directly or through others, by name. */
export function namedSchemasIn(value: unknown, found: Map<string, JsonSchema> = new Map()): Map<string, JsonSchema> {
  if (typeof value !== 'object' || value === null) return found;
  const definition = (value as JsonSchema)[NAMED];
  if (definition !== undefined && !found.has(definition.name)) {
    found.set(definition.name, definition.schema);
    namedSchemasIn(definition.schema, found);
  }
  for (const part of Object.values(value)) namedSchemasIn(part, found);
  return found;
}

/** The fields an answer must have, taken from its schema: an answer that lacks one does not compile. */
export type FieldsOf<Fields> = Readonly<Record<keyof Fields, unknown>>;

/** Every answer has every field, except those named in `optional`. */
export function object<Fields extends Readonly<Record<string, JsonSchema>>>(
  properties: Fields,
  optional: readonly string[] = [],
): JsonSchema<{ readonly [Name in keyof Fields]: ValueOf<Fields[Name]> }> {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }) };
}

export function text(description?: string): JsonSchema<string> {
  return { type: 'string', ...(description === undefined ? {} : { description }) };
}

export function integer(description?: string, minimum?: number): JsonSchema<number> {
  return {
    type: 'integer',
    ...(minimum === undefined ? {} : { minimum }),
    ...(description === undefined ? {} : { description }),
  };
}

export function number(description?: string): JsonSchema<number> {
  return { type: 'number', ...(description === undefined ? {} : { description }) };
}

export function boolean(description?: string): JsonSchema<boolean> {
  return { type: 'boolean', ...(description === undefined ? {} : { description }) };
}

/** The only value that the field can have: `object: 'list'`. */
export function constant<Value extends string | boolean>(value: Value): JsonSchema<Value> {
  return { type: typeof value, const: value };
}

export function oneOf<const Value extends string>(values: readonly Value[], description?: string): JsonSchema<Value> {
  return { type: 'string', enum: values, ...(description === undefined ? {} : { description }) };
}

/** One of a type's values: a record that lacks one of them does not compile. */
export function oneOfType<Value extends string>(
  values: Readonly<Record<Value, true>>,
  description?: string,
): JsonSchema<Value> {
  // Object.keys loses the type of the record's names.
  return oneOf(Object.keys(values) as Value[], description);
}

export function listOf<Item>(items: JsonSchema<Item>, description?: string): JsonSchema<readonly Item[]> {
  return { type: 'array', items, ...(description === undefined ? {} : { description }) };
}

export function time(description?: string): JsonSchema<number> {
  return { type: 'integer', minimum: 0, description: `${description ?? 'Time of creation'}, in Unix seconds.` };
}

/** docs/spec.md#conventions: the pattern of the ids that `newId` makes, a prefix and 24 base62 characters. */
export const idPattern = (prefix: string) => `^${prefix}_[0-9A-Za-z]{24}$`;

export function id(prefix: string, description?: string): JsonSchema<string> {
  return { type: 'string', pattern: idPattern(prefix), ...(description === undefined ? {} : { description }) };
}

export function nullable<const Value>(schema: JsonSchema<Value>): JsonSchema<Value | null> {
  const { type, ...others } = schema;
  if (typeof type !== 'string') return { anyOf: [schema, { type: 'null' }] };
  const values = others['enum'];
  return {
    ...others,
    type: [type, 'null'],
    ...(Array.isArray(values) ? { enum: [...(values as unknown[]), null] } : {}),
  };
}

/** A page of a list (docs/spec.md#conventions). */
export function pageSchema(items: JsonSchema, more: Readonly<Record<string, JsonSchema>> = {}): JsonSchema {
  return object({
    object: constant('list'),
    data: listOf(items),
    has_more: boolean('Whether there are items behind the last one.'),
    first_id: nullable(text('Null where the page is empty.')),
    last_id: nullable(text('`after` of the next page.')),
    ...more,
  });
}

export function deletedSchema(kind: string, idSchema: JsonSchema): JsonSchema {
  return object({ id: idSchema, object: constant(kind), deleted: constant(true) });
}

export interface Field<Sources extends unknown[]> {
  schema: JsonSchema;
  example: unknown;
  read(...sources: Sources): unknown;
}

/** If the schema allows null, `read` may leave the value undefined. */
type Readable<Value> = null extends Value ? Value | undefined : Value;

export function field<Sources extends unknown[], Value>(
  schema: JsonSchema<Value>,
  example: NoInfer<Value>,
  read: (...sources: Sources) => NoInfer<Readable<Value>>,
): Field<Sources> {
  return { schema, example, read };
}

/** The field `object`. */
export const kind = (name: string) => field(constant(name), name, () => name);

/** The fields of a resource by name, in the order of an answer. */
export type Fields<Sources extends unknown[]> = Readonly<Record<string, Field<Sources>>> & { id: Field<Sources> };

type WireObject = Readonly<Record<string, unknown>> & { id: string };

export interface Resource<Sources extends unknown[]> {
  fields: Fields<Sources>;
  schema: JsonSchema;
  listSchema: JsonSchema;
  example: WireObject;
  of: (...sources: Sources) => WireObject;
}

/** `Sources`: the things from which an answer's values are read, such as a row and a time. */
export function resource<Sources extends unknown[]>(name: string, fields: Fields<Sources>): Resource<Sources> {
  const schema = named(name, object(schemasOf(fields)));
  return {
    fields,
    schema,
    listSchema: named(`${name}List`, pageSchema(schema)),
    // Object.fromEntries loses the names, of which `id` is one.
    example: eachOf(fields, ({ example }) => example) as WireObject,
    of: (...sources) => eachOf(fields, (each) => each.read(...sources) ?? null) as WireObject,
  };
}

/** The schemas of a resource's fields, for an answer that has further ones. */
export const schemasOf = <Sources extends unknown[]>(fields: Fields<Sources>) => eachOf(fields, ({ schema }) => schema);

function eachOf<Sources extends unknown[], Part>(fields: Fields<Sources>, partOf: (field: Field<Sources>) => Part) {
  return Object.fromEntries(Object.entries(fields).map(([name, each]) => [name, partOf(each)]));
}

/** The value of a `time` field: Unix seconds, from milliseconds since the epoch. */
export function toSeconds(timeMs: number): number {
  return Math.floor(timeMs / 1000);
}

export function toSecondsOrNull(timeMs: number | undefined): number | null {
  return timeMs === undefined ? null : toSeconds(timeMs);
}

// Object.keys loses the type of the table's names.
export const ERROR_CODES = Object.keys(ERRORS) as ErrorCode[];

const codeSchema = named(
  'ErrorCode',
  oneOf(
    ERROR_CODES,
    ERROR_CODES.map((code) => `- \`${code}\` (${ERRORS[code].status}): ${ERRORS[code].meaning}`).join('\n'),
  ),
);

/** docs/spec.md#error-object. */
export const errorObjectSchema = named(
  'ErrorObject',
  object(
    {
      code: codeSchema,
      message: text('What to change, for people.'),
      type: oneOf([...new Set(Object.values(ERRORS).map(({ type }) => type))]),
      request_id: id('req', 'The same as the header `X-Request-Id`.'),
      param: text('The field or parameter at fault: `messages[3].content`.'),
      reason: text('A detail for programs: `in_flight`.'),
    },
    ['param', 'reason'],
  ),
);

export const errorSchema = named('Error', object({ error: errorObjectSchema }));

/** The last second of the year 9999. */
const UNIX_SECONDS_MAX = 253_402_300_799;
/** The micro-credits of a larger sum would exceed the range in which numbers are exact. */
const CREDITS_MAX = 1_000_000_000;

/** An id in what a caller sends; `noun` with its article. */
export const givenId = (prefix: string, noun: string) =>
  Joi.string()
    .pattern(new RegExp(idPattern(prefix)))
    .messages({ 'string.pattern.base': `{{#label}} must be the id of ${noun}` });

/** joi would demand a string, but a value of a query that is not a string can only be an array: it was repeated. */
export const ONCE: Joi.LanguageMessages = { 'string.base': '{{#label}} must be given once' };

export const countSchema = (min: number, max: number) => wholeNumberBetween(min, max);

export const unixSecondsSchema = (min: 0 | 1) => countSchema(min, UNIX_SECONDS_MAX);

/** Six decimals are whole micro-credits; a seventh would be lost (docs/spec.md#price). */
export const atMostSixDecimals: Joi.CustomValidator<number> = (value, helpers) =>
  Number(value.toFixed(6)) === value ? value : helpers.message({ custom: '{{#label}} must have at most six decimals' });

export const SIX_DECIMALS_RULE = { rule: 'At most six decimals.' };

/** An amount of credits on the wire, of either sign. */
export const creditsSchema = numberBetween(-CREDITS_MAX, CREDITS_MAX).custom(atMostSixDecimals).meta(SIX_DECIMALS_RULE);
