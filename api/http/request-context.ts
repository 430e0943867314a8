import type { Request, RequestHandler, Response } from 'express';

import type { AdminToken } from '../../shared/config/secret-settings.ts';
import type { Principal } from '../../shared/domain/principal.ts';
import { derivedId, newId } from '../../shared/lifecycle/ids.ts';
import type { IdPrefix } from '../../shared/lifecycle/ids.ts';
import type { Tracing } from '../../shared/tracing/tracing.ts';
import type { ServiceError } from '../../shared/errors/service-error.ts';

export interface BodyLimit {
  /** Applies to the bytes as they were sent, and again after decompression. */
  bytes: number;
  /** Creates the error for a larger body. */
  fault: () => ServiceError;
}

/** A run under an `Idempotency-Key`; one that fails or dies may be followed by another. */
interface KeyedRun {
  /** All runs of one keyed request share this name, and no other run has it. */
  name: string;
  /** An earlier run exists and may have had its effect. */
  isRepeat: boolean;
}

export interface RequestContext {
  requestId: string;
  /** Set once the key was accepted. */
  principal?: Principal;
  /** The administrator who acts. Set once the token was accepted. */
  administrator?: Pick<AdminToken, 'name' | 'role'>;
  /** The key was refused, on a path whose answer does not depend on the key. */
  hasFailedKey?: boolean;
  /** Set if the key is known but revoked or expired. */
  refusedPrincipal?: Principal;
  /** The call has its request: an error that follows is that request's end, not a refusal. */
  isAccepted?: boolean;
  /** A handler has claimed to count the request; see `claimCount`. */
  countIsClaimed: boolean;
  /** Set if the request runs under an `Idempotency-Key`. */
  run?: KeyedRun;
  /** Set on chat paths: key and path, under which refusals are remembered; see early-refusal.ts. */
  chatName?: string;
  /** Set if the body may be no larger than a small one; see early-refusal.ts. */
  bodyLimit?: BodyLimit;
  /** Redirects of the call that followed its tenant to another shard; see follow-move.ts. */
  redirects?: number;
  /** Set if the call is traced. */
  traceparent?: string;
  /** Gives back the room of a large body, once it is no longer held. Safe to repeat. */
  letBodyGo?: () => void;
  /** Deletes what reading the body has stored, if the request does not run after all. Safe to repeat. */
  discard?: () => Promise<void>;
}

/** A synchronous check or preparation of a request; it throws to refuse the request. */
export type Step = (req: Request, res: Response) => void;

/** Runs steps in one layer of Express, each of which costs a request a microsecond. */
export function inOneLayer(...steps: readonly Step[]): RequestHandler {
  return (req, res, next) => {
    for (const step of steps) step(req, res);
    next();
  };
}

export type Guard = (req: Request, res: Response) => Promise<void> | undefined;

export type Handlers = readonly [RequestHandler, ...RequestHandler[]];

/** Puts guards before handlers, in the layer of the first handler. */
export function guarded(guards: readonly (Step | Guard)[], ...[first, ...rest]: Handlers): RequestHandler[] {
  const guardedFirst: RequestHandler = async (req, res, next) => {
    for (const guard of guards) {
      const passing = guard(req, res);
      if (passing !== undefined) await passing;
    }
    await first(req, res, next);
  };
  return [guardedFirst, ...rest];
}

/** The context is a field of the response, because the garbage collector visits entries of a WeakMap again and again. */
const CONTEXT = Symbol('context');

/** The types of Express do not know the field. */
function holderOf(res: Response): { [CONTEXT]?: RequestContext } {
  return res as { [CONTEXT]?: RequestContext };
}

/** Runs first: gives the request its id, which every answer repeats as `X-Request-Id`. */
export const assignRequestId: Step = (_req, res) => {
  const requestId = newId('req');
  holderOf(res)[CONTEXT] = { requestId, countIsClaimed: false };
  res.setHeader('X-Request-Id', requestId);
};

export function contextOf(res: Response): RequestContext {
  const context = holderOf(res)[CONTEXT];
  if (context === undefined) throw new Error('assignRequestId must run before every other handler');
  return context;
}

/** The accepted key's principal; throws where `authenticate` has not run before. */
export function principalOf(res: Response): Principal {
  const { principal } = contextOf(res);
  if (principal === undefined) throw new Error('authenticate must run before this handler');
  return principal;
}

/**
 * True once for each request: the caller has to count it against its key. The claim comes before the count, so that a
 * refusal does not ask a Redis that has just failed to answer.
 */
export function claimCount(res: Response): boolean {
  const context = contextOf(res);
  const isFirst = !context.countIsClaimed;
  context.countIsClaimed = true;
  return isFirst;
}

/** The id of what the request creates. Runs under one `Idempotency-Key` share it, so they create one resource. */
export function idForNew(res: Response, prefix: IdPrefix): string {
  const { run } = contextOf(res);
  return run === undefined ? newId(prefix) : derivedId(prefix, run.name);
}

/** The row that an earlier run under the same `Idempotency-Key` has created. */
export async function createdBefore<Row>(
  res: Response,
  find: () => Promise<Row | undefined>,
): Promise<Row | undefined> {
  return contextOf(res).run?.isRepeat === true ? find() : undefined;
}

/**
 * Opens the span of a chat call and ends it with the response. Stands behind authentication, so that strangers cannot
 * flood the queue of spans. `route` is a constant, so that no part of a span's name comes from a caller.
 */
export function createTraceRequest(tracing: Tracing): (route: string) => Step {
  return (route) => (req, res) => {
    const context = contextOf(res);
    const { requestId } = context;
    const caller = req.get('traceparent');
    const span = tracing.receive({ requestId, caller, route, method: req.method, scheme: req.protocol });
    context.traceparent = span.traceparent;
    res.once('close', () => {
      // A caller who left before the status line was sent received no status.
      span.end(res.headersSent ? res.statusCode : undefined);
    });
  };
}
