import { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';

import { CHAT_LIMITS } from '../../shared/contracts/chat-request.ts';
import { ENDPOINTS, endpointRule, familyOf, methodsOf } from '../contract/endpoints.ts';
import type { EndpointName, EndpointRule } from '../contract/endpoints.ts';
import { methodNotAllowed } from './error-handler.ts';
import { readJsonBody } from './read-json-body.ts';
import { requireScope } from './require-scope.ts';

export interface Guards {
  authenticate: RequestHandler;
  /** For answers that do not depend on the key. */
  identify: RequestHandler;
  countRequest: RequestHandler;
  countLookup: RequestHandler;
  /** Answers a repeated `Idempotency-Key` of a family of routes. */
  replay: (family: string) => RequestHandler;
  /** Reads the body of a batch. */
  receiveBatch: RequestHandler;
}

/** A handler behind all guards; Express 5 passes what it throws to the error handler. */
export type EndpointHandler = (req: Request, res: Response) => void | Promise<void>;

export type ServeEndpoints = (handlers: Partial<Record<EndpointName, EndpointHandler>>) => Router;

const CHAT_BODY = {
  limitBytes: CHAT_LIMITS.bodyBytesMax,
  family: 'chat',
  valuesMax: CHAT_LIMITS.bodyValuesMax,
} as const;
const JSON_BODY = { limitBytes: 64 * 1024, family: 'other' } as const;

const BODIES: Record<Exclude<EndpointRule['body'], 'batch'>, RequestHandler[]> = {
  json: [readJsonBody(JSON_BODY)],
  'optional-json': [readJsonBody({ ...JSON_BODY, optional: true })],
  chat: [readJsonBody(CHAT_BODY)],
  own: [],
  none: [],
};

/**
 * Makes the routers of public endpoints from the table: key, scope, suspended tenant, limit, body, idempotency, in the
 * order of docs/spec/contract.md section 3, then the handler; a method that the path does not have is 405.
 */
export function createServeEndpoints(guards: Guards): ServeEndpoints {
  const counts: Record<EndpointRule['counts'], RequestHandler[]> = {
    request: [guards.countRequest],
    lookup: [guards.countLookup],
    admission: [],
  };

  const bodies: Record<EndpointRule['body'], RequestHandler[]> = { ...BODIES, batch: [guards.receiveBatch] };

  function chainOf(rule: EndpointRule): RequestHandler[] {
    const isReplayed = rule.method === 'POST' && rule.counts === 'request';
    return [
      guards.authenticate,
      ...(rule.scopes === 'any' ? [] : [requireScope(...rule.scopes)]),
      ...counts[rule.counts],
      ...bodies[rule.body],
      ...(isReplayed ? [guards.replay(familyOf(rule))] : []),
    ];
  }

  return (handlers) => {
    const router = Router();
    // Object.entries forgets that the names are those of the table.
    const named = Object.entries(handlers) as [EndpointName, EndpointHandler][];
    for (const path of new Set(named.map(([name]) => ENDPOINTS[name].path))) {
      const route = router.route(path);
      const own = named.filter(([name]) => ENDPOINTS[name].path === path);
      const methods = methodsOf(path);
      if (own.length !== methods.length) throw new Error(`All endpoints of ${path} must be served together`);
      for (const [name, handler] of own) {
        const rule = endpointRule(name);
        route[methodOf(rule)](...chainOf(rule), handler);
      }
      route.all(guards.identify, methodNotAllowed(...methods));
    }
    return router;
  };
}

function methodOf({ method }: EndpointRule): 'get' | 'post' | 'put' | 'patch' | 'delete' {
  switch (method) {
    case 'GET':
      return 'get';
    case 'POST':
      return 'post';
    case 'PUT':
      return 'put';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return 'delete';
  }
}
