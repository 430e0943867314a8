import type { Request, Response } from 'express';
import type Joi from 'joi';

import { listQuerySchema, parseListQuery } from '../../shared/contracts/list-page.ts';
import type { ListQuery } from '../../shared/contracts/list-page.ts';
import { checkAgainst } from '../../shared/contracts/parse.ts';
import type { Scope } from '../../shared/domain/api-key.ts';
import type { Principal } from '../../shared/domain/principal.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { RequestHeaderName, ResponseHeaderName } from './headers.ts';
import type { JsonSchema } from './json-schema.ts';
import { paramsOf, readParam } from './path-parameters.ts';
import type { ParamsOf, PathParam } from './path-parameters.ts';
import type { Actor } from './tenant-events.ts';

export interface Answer {
  description: string;
  /** By content type; absent: no body. */
  content?: Readonly<Record<string, JsonSchema>>;
  headers?: readonly ResponseHeaderName[];
}

export function json(description: string, schema: JsonSchema, headers: readonly ResponseHeaderName[] = []): Answer {
  return { description, content: { 'application/json': schema }, ...(headers.length === 0 ? {} : { headers }) };
}

/** A call that works on a tenant of its own: the document shows it, a test sends it. Path parameters have examples. */
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
  answerType?: string;
}

export function exampleList<Item extends { id: string }>(item: Item, more: object = {}) {
  return { object: 'list', data: [item], has_more: false, first_id: item.id, last_id: item.id, ...more };
}

/** A query string as Express parses it. */
type RawQuery = Readonly<Record<string, unknown>>;

export interface QueryRule<T> {
  schemas: readonly Joi.ObjectSchema[];
  /** Throws `invalid_request`. */
  read(query: RawQuery): T;
}

/** `limit`, `after` and `order` of every list. */
export const listQuery: QueryRule<ListQuery> = { schemas: [listQuerySchema], read: parseListQuery };

/**
 * `json`: a JSON body of at most 64 KiB; `optional-json`: the same, or no body; `chat`: a JSON body of at most 20 MiB;
 * `inputs`: one of at most 4 MiB, for hundreds of thousands of numbers; `batch`: JSON or NDJSON of at most 50 MiB,
 * stored while it arrives.
 */
export type BodyKind = 'json' | 'optional-json' | 'chat' | 'inputs' | 'batch';

/** The schema in the document is the one that validates. */
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

export function methodsOf(operations: Iterable<Operation>, path: string): Method[] {
  return [...operations].filter((operation) => operation.path === path).map(({ method }) => method);
}

export interface Reply<Status extends number = number> {
  status: Status;
  body: object;
  /** The address at which the accepted resource can be looked up. */
  location?: string;
}

export const ok = (body: object): Reply<200> => ({ status: 200, body });
export const created = (body: object): Reply<201> => ({ status: 201, body });
export const accepted = (body: object, location: string): Reply<202> => ({ status: 202, body, location });

/** The result of a handler after writing the response itself: a stream, a download. */
export interface Sent {
  status: 'sent';
}
export const SENT: Sent = { status: 'sent' };

export type HandlerResult<Status extends number = number> = Reply<Status> | Sent;

/** A call that has passed the guards, before its parts are read. */
interface RawCall {
  req: Request;
  res: Response;
  requestId: string;
}

export interface RawKeyCall extends RawCall {
  principal: Principal;
  /** The key as the audit log and the webhooks name it. */
  actor: Actor;
}

export interface RawAdminCall extends RawCall {
  /** The administrator, acting on a tenant's account. */
  actorIn(tenantId: string): Actor;
}

interface CallParts<Path extends string, Query, Body> {
  params: Readonly<Record<ParamsOf<Path>, string>>;
  query: Query;
  body: Body;
}

/** Serves a call; Express 5 passes what it throws to the error handler. */
type Handle<Call, Deps> = (call: Call, deps: Deps) => HandlerResult | Promise<HandlerResult>;

/** A number of calls per minute, for one key or for all keys of a tenant together. */
export interface OwnLimit {
  perMinute: number;
  of: 'key' | 'tenant';
}

/** An endpoint that takes an API key, below `/platform/v1`. */
export interface Endpoint<Deps = never> extends Operation {
  /** The key needs one of these; `any`: every valid key may call. */
  scopes: readonly Scope[] | 'any';
  /** `request`: the key's rpm; `admission`: so too, at admission; `lookup`: look-ups (docs/spec.md#rate-limits). */
  counts: 'request' | 'admission' | 'lookup';
  /** A limit of its own on top of the key's rpm; only with `request`. */
  ownLimit?: OwnLimit;
  handle: Handle<RawKeyCall, Deps>;
}

/** An endpoint that takes the administrator's token, below `/admin/v1`. */
export interface AdminEndpoint<Deps = never> extends Operation {
  /** A successful answer is replayed for the same `Idempotency-Key`. */
  isRemembered?: boolean;
  handle: Handle<RawAdminCall, Deps>;
}

interface Definition<Path extends string, Query, Body, Status extends number, Call, Deps> extends Omit<
  Operation,
  'path' | 'query' | 'body' | 'answers'
> {
  path: ParamsOf<Path> extends PathParam ? Path : never;
  query?: QueryRule<Query>;
  body?: BodyRule<Body>;
  answers: Readonly<Record<Status, Answer>>;
  handle: (
    call: Call & CallParts<Path, Query, Body>,
    deps: Deps,
  ) => HandlerResult<NoInfer<Status>> | Promise<HandlerResult<NoInfer<Status>>>;
}

/** Reads the parts of a call before its handler runs, so that a malformed part is refused before anything is done. */
function reading<Path extends string, Query, Body, Status extends number, Call extends RawCall, Deps>({
  path,
  query,
  body,
  handle,
}: Definition<Path, Query, Body, Status, Call, Deps>): Handle<Call, Deps> {
  const names = paramsOf(path);
  return (call, deps) => {
    // `names` are the path's own; `Query` and `Body` are undefined if the definition has no rule for them.
    const parts = {
      params: Object.fromEntries(names.map((name) => [name, readParam(call.req, name)])),
      query: query?.read(call.req.query),
      body: body?.read(call.req.body),
    } as CallParts<Path, Query, Body>;
    // A stream may run for minutes, and the unknown fields of its body may be large.
    call.req.body = undefined;
    return handle({ ...call, ...parts }, deps);
  };
}

/**
 * Defines an endpoint of the public API in one place: guards, 405s, the OpenAPI document, its page and the test matrix
 * follow from it. Opens nothing: each call hands the handler what it uses.
 */
export function defineEndpoint<
  const Path extends string,
  Status extends number,
  Deps = unknown,
  Query = undefined,
  Body = undefined,
>(
  definition: Definition<Path, Query, Body, Status, RawKeyCall, Deps> &
    Pick<Endpoint, 'scopes'> &
    Partial<Pick<Endpoint, 'counts' | 'ownLimit'>>,
): Endpoint<Deps> {
  return { counts: 'request', ...definition, handle: reading<Path, Query, Body, Status, RawKeyCall, Deps>(definition) };
}

/** Refuses parameters that an operator has misspelt: a list without its filter shows what belongs to others. */
function onlyKnown<Query>(rule: QueryRule<Query>): QueryRule<Query> {
  // The description of an object's schema has its keys, which joi's types do not say.
  const keysOf = (schema: Joi.ObjectSchema) => Object.keys((schema.describe() as { keys?: object }).keys ?? {});
  const known = rule.schemas.flatMap(keysOf);
  return {
    ...rule,
    read(query) {
      const parameters = rule.read(query);
      const unknown = Object.keys(query).find((name) => !known.includes(name));
      if (unknown === undefined) return parameters;
      throw new ServiceError('invalid_request', `\`${unknown}\` is no parameter here; known: ${known.join(', ')}.`, {
        param: unknown,
      });
    },
  };
}

/** The same for an endpoint of the administration. */
export function defineAdminEndpoint<
  const Path extends string,
  Status extends number,
  Deps = unknown,
  Query = undefined,
  Body = undefined,
>(
  given: Definition<Path, Query, Body, Status, RawAdminCall, Deps> & Pick<AdminEndpoint, 'isRemembered'>,
): AdminEndpoint<Deps> {
  const definition = given.query === undefined ? given : { ...given, query: onlyKnown(given.query) };
  return { ...definition, handle: reading<Path, Query, Body, Status, RawAdminCall, Deps>(definition) };
}

export function isIdempotent({ method, counts }: Endpoint): boolean {
  return method === 'POST' && counts !== 'lookup';
}

/** The first segment of a path: the scope of an `Idempotency-Key` (docs/spec.md#idempotency). */
export function familyOf({ path }: Pick<Operation, 'path'>): string {
  return path.split('/')[1] ?? '';
}
