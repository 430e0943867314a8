import type Joi from 'joi';

import { listQuerySchema, parseListQuery } from '../../shared/contracts/list-page.ts';
import type { ListQuery } from '../../shared/contracts/list-page.ts';
import { checkAgainst } from '../../shared/contracts/parse.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';
import type { RequestHeaderName, ResponseHeaderName } from './headers.ts';
import type { JsonSchema } from './json-schema.ts';

/** A successful answer. */
export interface Answer {
  description: string;
  /** By content type; absent: no body. */
  content?: Readonly<Record<string, JsonSchema>>;
  headers?: readonly ResponseHeaderName[];
}

/** A JSON answer, as nearly every answer is. */
export function json(description: string, schema: JsonSchema, headers: readonly ResponseHeaderName[] = []): Answer {
  return { description, content: { 'application/json': schema }, ...(headers.length === 0 ? {} : { headers }) };
}

/**
 * A call that works as it stands, on a tenant of its own, and its answer. Both appear in the document, and a test sends
 * the call. Path parameters have their own examples.
 */
export interface Example {
  summary?: string;
  query?: Readonly<Record<string, string | number | readonly string[]>>;
  headers?: Partial<Readonly<Record<RequestHeaderName, string>>>;
  /** The body, in the first content type or in `contentType`. */
  body?: unknown;
  contentType?: string;
  status: number;
  /** A possible answer: ids, times and texts differ from call to call. */
  answer?: unknown;
  /** The answer's content type, if the endpoint has several. */
  answerType?: string;
}

/** A page with one item, as an example. */
export function exampleList<Item extends { id: string }>(item: Item, more: object = {}) {
  return { object: 'list', data: [item], has_more: false, first_id: item.id, last_id: item.id, ...more };
}

/** A query string as Express parses it. */
type RawQuery = Readonly<Record<string, unknown>>;

/** How a query string is read, and the schemas of its parameters for the document. */
export interface QueryRule<T> {
  schemas: readonly Joi.ObjectSchema[];
  /** Throws `invalid_request`. */
  read(query: RawQuery): T;
}

/** `limit`, `after` and `order` of every list. */
export const listQuery: QueryRule<ListQuery> = { schemas: [listQuerySchema], read: parseListQuery };

/**
 * `json`: a JSON body of at most 64 KiB; `optional-json`: the same, or no body; `chat`: a JSON body of at most 20 MiB;
 * `batch`: JSON or NDJSON of at most 50 MiB, which is stored while it arrives.
 */
export type BodyKind = 'json' | 'optional-json' | 'chat' | 'batch';

/** How a body is read, and its schema for the document: the same one that validates. */
export interface BodyRule<T> {
  kind: BodyKind;
  /** Its name among the document's schemas. */
  name: string;
  schema: Joi.ObjectSchema;
  /** Schemas of content types other than JSON. */
  others?: Readonly<Record<string, { name: string; schema: Joi.ObjectSchema }>>;
  /** Throws `invalid_request`. */
  read(input: unknown): T;
}

function checked<T>(schema: Joi.ObjectSchema<T>) {
  return (input: unknown): T => {
    checkAgainst(schema, input);
    return input;
  };
}

export function jsonBody<T>(name: string, schema: Joi.ObjectSchema<T>): BodyRule<T> {
  return { kind: 'json', name, schema, read: checked(schema) };
}

export function optionalJsonBody<T>(name: string, schema: Joi.ObjectSchema<T>): BodyRule<T> {
  return { ...jsonBody(name, schema), kind: 'optional-json' };
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** An endpoint as the router, the document and the tests see it. */
export interface Operation {
  method: Method;
  /** In Express's notation: `:name` stands for one segment. */
  path: string;
  /** Its group in the document. */
  tag: string;
  summary: string;
  description?: string;
  query?: Pick<QueryRule<unknown>, 'schemas'>;
  /** Request headers that the endpoint uses; `Idempotency-Key` follows from the method. */
  headers?: readonly RequestHeaderName[];
  body?: Omit<BodyRule<unknown>, 'read'>;
  answers: Readonly<Record<number, Answer>>;
  /** Errors that do not follow from the guards. */
  errors?: readonly ErrorCode[];
  /** Names are unique within an operation. */
  examples: Readonly<Record<string, Example>>;
}

/** The methods that a path answers. */
export function methodsOf(operations: Iterable<Pick<Operation, 'method' | 'path'>>, path: string): Method[] {
  return [...operations].filter((operation) => operation.path === path).map(({ method }) => method);
}
