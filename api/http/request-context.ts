import type { RequestHandler, Response } from 'express';

import type { AdminToken } from '../../shared/config/secret-settings.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import { derivedId, newId } from '../../shared/lifecycle/ids.ts';
import type { IdPrefix } from '../../shared/lifecycle/ids.ts';

/** A run under an `Idempotency-Key`; one that fails or dies may be followed by another. */
interface KeyedRun {
  /** All runs of one keyed request share this name, and no other run has it. */
  name: string;
  /** An earlier run exists and may have had its effect. */
  isRepeat: boolean;
}

/** What a request carries from middleware to route. */
export interface RequestContext {
  requestId: string;
  /** Set once the key was accepted. */
  principal?: Principal;
  /** Who acts, in the administration. Set once the token was accepted. */
  administrator?: Pick<AdminToken, 'name' | 'role'>;
  /** The key was refused where the answer does not depend on it. */
  hasFailedKey?: boolean;
  /** A handler has claimed to count the request; see `claimCount`. */
  countIsClaimed: boolean;
  /** Set where the request runs under an `Idempotency-Key`. */
  run?: KeyedRun;
  /** Set where this call is traced; see trace-request.ts. */
  traceparent?: string;
  /** Removes what the reader of the body has stored, when the request does not run after all. Safe to repeat. */
  undo?: () => Promise<void>;
}

const contexts = new WeakMap<Response, RequestContext>();

/** Runs first: gives the request its id, which every answer repeats as `X-Request-Id`. */
export const assignRequestId: RequestHandler = (_req, res, next) => {
  const requestId = newId('req');
  contexts.set(res, { requestId, countIsClaimed: false });
  res.setHeader('X-Request-Id', requestId);
  next();
};

export function contextOf(res: Response): RequestContext {
  const context = contexts.get(res);
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
 * Whether the caller has to count this request against its key: true once for each request. The claim comes before the
 * count, so that a refusal does not ask a Redis that has just failed to answer.
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
