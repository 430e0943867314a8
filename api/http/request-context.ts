import type { RequestHandler, Response } from 'express';

import type { Principal } from '../../shared/domain/keys/principal.ts';
import { newId } from '../../shared/lifecycle/ids.ts';

/** What a request carries from middleware to route. */
export interface RequestContext {
  requestId: string;
  /** Set once the key was accepted. */
  principal?: Principal;
  /** Whether the request has been counted against the key's rpm; each is counted once. */
  counted: boolean;
  /** Takes back what the reader of the body has stored; for a request that turns out not to run. Safe to repeat. */
  undo?: () => Promise<void>;
}

const contexts = new WeakMap<Response, RequestContext>();

/** First in the chain: gives the request its id, which is also the `X-Request-Id` of whatever answer follows. */
export const assignRequestId: RequestHandler = (_req, res, next) => {
  const requestId = newId('req');
  contexts.set(res, { requestId, counted: false });
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
