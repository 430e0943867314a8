import { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';

import { CHAT_LIMITS } from '../../shared/contracts/chat-request.ts';
import { ERRORS } from '../../shared/errors/codes.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { familyOf, methodsOf } from '../contract/endpoint.ts';
import type { AdminEndpoint, Endpoint, HandlerResult, BodyKind, Method, Operation } from '../contract/endpoint.ts';
import type { EndpointLimit } from './count-requests.ts';
import { methodNotAllowed } from './error-handler.ts';
import { createBodyBudget } from './read-body.ts';
import { createBodyDeps, readJsonBody } from './json-body.ts';
import type { BodyDeps } from './json-body.ts';
import { contextOf, guarded, principalOf } from './request-context.ts';
import type { Guard, Handlers, Step } from './request-context.ts';
import { requireScope } from './authenticate.ts';

export interface Guards {
  authenticate: Guard;
  /** Makes the step that traces the chat requests of a route. Undefined: nothing is traced. */
  traceRequest?: ((route: string) => Step) | undefined;
  /** For answers that do not depend on the key. */
  identify: RequestHandler;
  /** Counts a request against the key's rpm, and against the endpoint's own limit. */
  countRequest: (own?: EndpointLimit) => Guard;
  countLookup: Guard;
  /** Answers a repeated `Idempotency-Key` within a family of paths. */
  replay: (family: string) => RequestHandler;
  /** Refuses a batch whose tenant has written all that it may in this minute. */
  mayUpload: Guard;
  receiveBatch: RequestHandler;
  /** Refuses a chat request if its body is not needed for that. */
  refuseEarly: Guard;
  bodies: BodyDeps;
}

const CHAT_BODY = {
  limitBytes: CHAT_LIMITS.bodyBytesMax,
  family: 'chat',
  valuesMax: CHAT_LIMITS.bodyValuesMax,
} as const;
/** Of 300,000 tokens, as texts or as numbers. */
const INPUTS_BODY = { limitBytes: 4 * 1024 * 1024, family: 'other', valuesMax: 310_000 } as const;
const API_PATH = '/platform/v1';
const JSON_BODY_BYTES_MAX = 64 * 1024;
const JSON_BODY = { limitBytes: JSON_BODY_BYTES_MAX, family: 'other' } as const;

function createBodyReaders(deps: BodyDeps): Readonly<Record<Exclude<BodyKind, 'batch'>, Guard>> {
  return {
    json: readJsonBody(JSON_BODY, deps),
    'optional-json': readJsonBody({ ...JSON_BODY, optional: true }, deps),
    chat: readJsonBody(CHAT_BODY, deps),
    inputs: readJsonBody(INPUTS_BODY, deps),
  };
}

const EXPRESS_METHODS = {
  GET: 'get',
  POST: 'post',
  PUT: 'put',
  PATCH: 'patch',
  DELETE: 'delete',
} as const satisfies Record<Method, string>;

function send(res: Response, outcome: HandlerResult): void {
  if (outcome.status === 'sent') return;
  if (outcome.location !== undefined) res.setHeader('Location', outcome.location);
  res.status(outcome.status).json(outcome.body);
}

/** One route per path with a handler chain for each of its methods; any other method gets 405. */
function route<Definition extends Operation>(
  endpoints: Readonly<Record<string, Definition>>,
  chainOf: (endpoint: Definition) => RequestHandler[],
  ...beforeRefusal: RequestHandler[]
): Router {
  const router = Router();
  const all = Object.values(endpoints);
  for (const path of new Set(all.map((endpoint) => endpoint.path))) {
    const served = router.route(path);
    for (const endpoint of all.filter((each) => each.path === path)) {
      served[EXPRESS_METHODS[endpoint.method]](...chainOf(endpoint));
    }
    served.all(...beforeRefusal, methodNotAllowed(...methodsOf(all, path)));
  }
  return router;
}

/** The order is that of docs/spec.md#chat-request: key, scope, suspended tenant, limit, body, idempotency, handler. */
export function serveEndpoints<Deps>(
  endpoints: Readonly<Record<string, Endpoint<Deps>>>,
  guards: Guards,
  deps: Deps,
): Router {
  function countsOf({ counts, method, path, ownLimit }: Endpoint<Deps>): Guard {
    switch (counts) {
      case 'request':
        return guards.countRequest(ownLimit && { name: `${method} ${path}`, ...ownLimit });
      case 'lookup':
        return guards.countLookup;
      case 'admission':
        return guards.refuseEarly;
    }
  }
  const readers = createBodyReaders(guards.bodies);

  function chainOf(endpoint: Endpoint<Deps>): RequestHandler[] {
    const { method, path, scopes, counts: count, body, handle } = endpoint;
    const isReplayed = method === 'POST' && count === 'request';
    const answer: RequestHandler = async (req, res) => {
      const { requestId } = contextOf(res);
      const principal = principalOf(res);
      const { tenantId, mode, keyId: id } = principal;
      send(res, await handle({ req, res, requestId, principal, actor: { tenantId, mode, id, requestId } }, deps));
    };
    const replayed: Handlers = isReplayed ? [guards.replay(familyOf(endpoint)), answer] : [answer];
    const known = [guards.authenticate, requireScope(scopes)];
    // A body may take minutes, in which its key is revoked or narrowed; admission sees that itself.
    const stillKnown = body !== undefined && count === 'request' ? known : [];
    const before = [
      ...known,
      ...(count === 'admission' && guards.traceRequest ? [guards.traceRequest(`${API_PATH}${path}`)] : []),
      ...(body?.kind === 'batch' ? [guards.mayUpload] : []),
      countsOf(endpoint),
    ];
    if (body?.kind === 'batch') return guarded(before, guards.receiveBatch, ...guarded(stillKnown, ...replayed));
    return guarded([...before, ...(body === undefined ? [] : [readers[body.kind]]), ...stillKnown], ...replayed);
  }

  return route(endpoints, chainOf, guards.identify);
}

/** Records what a call of the administration is about to change; see `createAdminAudit`. */
export interface RecordChanges {
  begin(req: Request, res: Response, changes: unknown): Promise<(outcome: ChangeOutcome) => Promise<void>>;
}
interface ChangeOutcome {
  status: number;
  target?: string;
}

/** A body that its schema refuses changes nothing. It is not recorded, because nobody knows what it holds. */
function isRefused(body: Operation['body'], input: unknown): boolean {
  return body?.schema.validate(input, { convert: false }).error !== undefined;
}

function outcomeOf(outcome: HandlerResult, res: Response): ChangeOutcome {
  if (outcome.status === 'sent') return { status: res.statusCode };
  const { status, body } = outcome;
  return { status, ...('id' in body && typeof body.id === 'string' ? { target: body.id } : {}) };
}

/** Serves the endpoints of the administration; token and role have already been checked. */
export function serveAdminEndpoints<Deps>(
  endpoints: Readonly<Record<string, AdminEndpoint<Deps>>>,
  deps: Deps,
  audit: RecordChanges,
  replay: Guards['replay'],
): Router {
  const readers = createBodyReaders(createBodyDeps(createBodyBudget()));
  return route(endpoints, ({ method, path, body, isRemembered, handle }) => {
    const reading = body === undefined || body.kind === 'batch' ? [] : [readers[body.kind]];
    const answer: RequestHandler = async (req, res) => {
      const { requestId } = contextOf(res);
      const actorIn = (tenantId: string) => ({ tenantId, mode: 'live' as const, id: 'administrator', requestId });
      const isChange = method !== 'GET' && !isRefused(body, req.body);
      const conclude = isChange ? await audit.begin(req, res, body === undefined ? undefined : req.body) : undefined;
      try {
        const outcome = await handle({ req, res, requestId, actorIn }, deps);
        await conclude?.(outcomeOf(outcome, res));
        send(res, outcome);
      } catch (error) {
        // After any other failure nobody knows what has changed.
        if (error instanceof ServiceError) await conclude?.({ status: ERRORS[error.code].status });
        throw error;
      }
    };
    return isRemembered === true ? guarded(reading, replay(familyOf({ path })), answer) : guarded(reading, answer);
  });
}
