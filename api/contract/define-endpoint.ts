import type { Request, Response } from 'express';

import type { Scope } from '../../shared/domain/keys/api-key.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import type { Actor } from '../tenant-events.ts';
import type { Answer, BodyRule, Operation, QueryRule } from './operation.ts';
import { paramsOf, readParam } from './path-parameters.ts';
import type { ParamsOf, PathParam } from './path-parameters.ts';

/** A successful answer in JSON. */
export interface Reply<Status extends number = number> {
  status: Status;
  body: object;
  /** Where the resource that was accepted can be looked up. */
  location?: string;
}

export const ok = (body: object): Reply<200> => ({ status: 200, body });
export const created = (body: object): Reply<201> => ({ status: 201, body });
export const accepted = (body: object, location: string): Reply<202> => ({ status: 202, body, location });

/** What a handler returns that has written the response by itself: a stream, a download. */
export interface Sent {
  status: 'sent';
}
export const SENT: Sent = { status: 'sent' };

export type HandlerResult<Status extends number = number> = Reply<Status> | Sent;

/** A call behind the guards, before its parts are read. */
interface RawCall {
  req: Request;
  res: Response;
  requestId: string;
}

/** A call of the public API: the key that sent it is known. */
export interface RawKeyCall extends RawCall {
  principal: Principal;
  /** The key, as audit log and webhooks name it. */
  actor: Actor;
}

/** A call of the administration. */
export interface RawAdminCall extends RawCall {
  /** The administrator, acting on a tenant's account. */
  actorIn(tenantId: string): Actor;
}

/** What a handler reads of a call, typed by the definition. */
interface CallParts<Path extends string, Query, Body> {
  params: Readonly<Record<ParamsOf<Path>, string>>;
  query: Query;
  body: Body;
}

/** Serves a call; Express 5 passes what it throws to the error handler. */
type Handle<Call, Deps> = (call: Call, deps: Deps) => HandlerResult | Promise<HandlerResult>;

/** So many calls a minute, of a key or of all keys of a tenant together. */
export interface OwnLimit {
  perMinute: number;
  of: 'key' | 'tenant';
}

/** An endpoint that takes an API key, below `/platform/v1`. */
export interface Endpoint<Deps = never> extends Operation {
  /** A key needs one of them; `any`: every valid key may call. */
  scopes: readonly Scope[] | 'any';
  /**
   * Which limit a call takes from: `request`: one of the key's rpm; `admission`: the same, taken by admission; `lookup`:
   * the limit of look-ups (docs/spec/contract.md section 3).
   */
  counts: 'request' | 'admission' | 'lookup';
  /** A limit of its own beside the key's rpm, for `request` alone. */
  ownLimit?: OwnLimit;
  handle: Handle<RawKeyCall, Deps>;
}

/** An endpoint that takes the administrator's token, below `/admin/v1`. */
export interface AdminEndpoint<Deps = never> extends Operation {
  /** Its success is given again to the same `Idempotency-Key`. */
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
    // `names` are those of the path, `Query` and `Body` are undefined where the definition has no rule.
    const parts = {
      params: Object.fromEntries(names.map((name) => [name, readParam(call.req, name)])),
      query: query?.read(call.req.query),
      body: body?.read(call.req.body),
    } as CallParts<Path, Query, Body>;
    // A stream may run for minutes, and what the body has beside its known fields may be large.
    call.req.body = undefined;
    return handle({ ...call, ...parts }, deps);
  };
}

/**
 * Defines an endpoint of the public API in one place. Guards, 405s, the OpenAPI document, its page and the test matrix
 * follow from the definition. It opens nothing: what a handler uses is handed to it with each call.
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

/** The same for an endpoint of the administration. */
export function defineAdminEndpoint<
  const Path extends string,
  Status extends number,
  Deps = unknown,
  Query = undefined,
  Body = undefined,
>(
  definition: Definition<Path, Query, Body, Status, RawAdminCall, Deps> & Pick<AdminEndpoint, 'isRemembered'>,
): AdminEndpoint<Deps> {
  return { ...definition, handle: reading<Path, Query, Body, Status, RawAdminCall, Deps>(definition) };
}

/** Whether an `Idempotency-Key` has an effect. */
export function isIdempotent({ method, counts }: Pick<Endpoint, 'method' | 'counts'>): boolean {
  return method === 'POST' && counts !== 'lookup';
}

/** The first segment of a path: an `Idempotency-Key` counts within it (docs/spec/contract.md section 3). */
export function familyOf({ path }: Pick<Operation, 'path'>): string {
  return path.split('/')[1] ?? '';
}
