import cors from 'cors';
import express, { Router } from 'express';
import type { ErrorRequestHandler, Express, RequestHandler, Response } from 'express';

import type { IngressMetrics } from '../shared/metrics/ingress-series.ts';
import { BUILD } from '../shared/config/load-config.ts';
import type { Config } from '../shared/config/settings.ts';
import type { Tracing } from '../shared/tracing/tracing.ts';
import type { ErrorCode } from '../shared/errors/codes.ts';
import { ServiceError } from '../shared/errors/service-error.ts';
import type { Serving } from '../shared/lifecycle/readiness.ts';
import { setAddressHeaders } from './http/count-requests.ts';
import { createBodyBudget } from './http/read-body.ts';
import { createBodyDeps } from './http/json-body.ts';
import { createIdentify } from './http/authenticate.ts';
import { createErrorHandler, methodNotAllowed, storeFault } from './http/error-handler.ts';
import type { RefusalWatch } from './http/refusal-watch.ts';
import { createReplay } from './http/idempotent-replay.ts';
import type { ReplayDeps } from './http/idempotent-replay.ts';
import { assignRequestId, inOneLayer, claimCount, createTraceRequest, principalOf } from './http/request-context.ts';
import type { Guard, Step } from './http/request-context.ts';
import { requireClearHead, requireHttps } from './http/head-guards.ts';
import { serveEndpoints } from './http/serve-endpoints.ts';
import type { Guards } from './http/serve-endpoints.ts';
import { createWrongPath } from './http/wrong-path.ts';
import { RESPONSE_HEADERS, TOKEN_HEADERS, UNIFORM_HEADERS } from './contract/headers.ts';
import { ENDPOINTS } from './endpoints.ts';
import type { EndpointDeps } from './endpoints.ts';
import type { RequestRecorder } from '../shared/mongo/requests/request-log.ts';
import { createReceiveBatch } from './resources/batches/receive-batch.ts';
import { createRespond } from './chat/chat-endpoints.ts';
import type { RespondDeps } from './chat/chat-endpoints.ts';
import { createConsoleRoute } from './resources/console-route.ts';
import { servedDocument, createDocsRoute, createOpenapiRoute, DOCUMENT_CACHE } from './resources/docs-route.ts';

export interface AppDeps extends Omit<EndpointDeps, 'respond'>, Omit<RespondDeps, 'records'>, ReplayDeps {
  http: Config['http'];
  authenticate: Guard;
  recorder: RequestRecorder;
  countRefusal: (error: ServiceError, res: Response) => Promise<ServiceError>;
  refusals: RefusalWatch;
  countLookup: Guard;
  countRequest: Guards['countRequest'];
  /** Refuses a chat request before its body is read. */
  refuseEarly: Guard;
  serving: Serving;
  metrics: IngressMetrics;
  /** Receives payment notices, which come without a key. Undefined: nothing is sold. */
  paymentRoute: Router | undefined;
  /** Undefined: nothing is traced. */
  tracing: Tracing | undefined;
}

/** Headers a page of another origin may read: all that mean something to a client. */
const EXPOSED_HEADERS = ['Allow', ...[UNIFORM_HEADERS, TOKEN_HEADERS, RESPONSE_HEADERS].flatMap(Object.keys)];

/** A preflight has no key and ends in `cors`. Like every answer it names the limit, but looks nothing up. */
const describePreflight: RequestHandler = (req, res, next) => {
  if (req.method === 'OPTIONS') setAddressHeaders(res);
  next();
};

/** Ignores `If-None-Match: *`, to which Express would answer every GET with 304 and no body. */
const ignoreAnyMatch: Step = (req) => {
  if (req.headers['if-none-match']?.trim() === '*') delete req.headers['if-none-match'];
};

/** Answers echo what callers have sent, so no browser may take one for a page. */
const forbidSniffing: Step = (_req, res) => {
  res.setHeader('X-Content-Type-Options', 'nosniff');
};

const describeAddress: RequestHandler = (_req, res, next) => {
  setAddressHeaders(res);
  next();
};

/** Counts and times every answer by its route's pattern; paths without a route share one label. */
function createMeasure({ requests, duration }: IngressMetrics): Step {
  return (req, res) => {
    const stop = duration.startTimer();
    res.once('close', () => {
      // Express types `route` as any; it is set once a route has matched.
      const { path = 'none' } = (req.route as { path?: string } | undefined) ?? {};
      requests.inc({ route: path, status: res.statusCode });
      stop({ route: path });
    });
  };
}

const HEALTH_PATH = /^\/health\/(live|ready)\/?$/i;

/** Health checks may come over plain HTTP. */
const requireHttpsOfCalls: Step = (req, res) => {
  if (req.secure || !HEALTH_PATH.test(req.path)) requireHttps(req, res);
};

/** `GET /health/live` and `/health/ready` (docs/spec.md#health); they need no key and touch no limit. */
function createHealthRoute(serving: Serving): Router {
  const router = Router();
  router.use('/health', describeAddress);
  router
    .route('/health/live')
    .get((_req, res) => {
      res.json({ status: 'ok', ...BUILD });
    })
    .all(methodNotAllowed('GET'));
  router
    .route('/health/ready')
    .get(async (_req, res) => {
      const { ready, checks } = await serving.check();
      if (!ready) res.setHeader('Retry-After', 1);
      res.status(ready ? 200 : 503).json({ status: ready ? 'ok' : 'unavailable', checks });
    })
    .all(methodNotAllowed('GET'));
  return router;
}

/** Express refuses a malformed escape in an id before any guard runs; this identifies the caller for the headers. */
function createIdentifyBadPath(identify: RequestHandler): ErrorRequestHandler {
  return (fault, req, res, next) => {
    const goOn = () => {
      next(fault);
    };
    if (fault instanceof URIError) void identify(req, res, goOn);
    else goOn();
  };
}

/** Served until the ingress has all it needs, so that a liveness probe passes and a caller gets a typed 503. */
export function createStartingApp({ serving, log }: Pick<AppDeps, 'serving' | 'log'>): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.use(inOneLayer(assignRequestId, forbidSniffing), createHealthRoute(serving), describeAddress);
  app.use(() => {
    throw new ServiceError('model_unavailable', 'This server is starting; try again shortly.', {
      retryAfterSeconds: 1,
    });
  });
  app.use(createErrorHandler({ log }));
  return app;
}

/** The public side of the ingress. It opens nothing: everything it uses is handed in. */
export function createApp(deps: AppDeps): Express {
  const { http, authenticate, metrics, log } = deps;
  const app = express();
  app.disable('x-powered-by').disable('etag').set('trust proxy', http.trustProxy).set('query parser', 'simple');

  const steps = [assignRequestId, forbidSniffing, createMeasure(metrics)];
  app.use(inOneLayer(...steps, ...(http.requireHttps ? [requireHttpsOfCalls] : []), requireClearHead, ignoreAnyMatch));
  const origins: RequestHandler[] =
    http.corsOrigins.length === 0
      ? []
      : [describePreflight, cors({ origin: http.corsOrigins, exposedHeaders: EXPOSED_HEADERS, maxAge: 600 })];

  const identify = createIdentify(authenticate);
  const bodies = createBodyDeps(createBodyBudget());
  const guards: Guards = {
    authenticate,
    traceRequest: deps.tracing && createTraceRequest(deps.tracing),
    identify,
    countRequest: deps.countRequest,
    countLookup: deps.countLookup,
    replay: createReplay(deps),
    mayUpload(_req, res) {
      // A 429 takes nothing, and a Redis that does not answer is not asked again.
      claimCount(res);
      return deps.batchQueue.assertMayWrite(principalOf(res));
    },
    receiveBatch: createReceiveBatch({ ...deps, bodies }),
    refuseEarly: deps.refuseEarly,
    bodies,
  };
  // The endpoints come first, because every router that a request passes through costs time.
  const endpoints = serveEndpoints(ENDPOINTS, guards, { ...deps, respond: createRespond(deps) });
  app.use('/platform/v1', ...origins, endpoints);

  app.use(createHealthRoute(deps.serving), ...origins);
  // These need no key and count against no limit.
  const openapi = createOpenapiRoute(servedDocument, { cacheControl: DOCUMENT_CACHE, prepare: describeAddress });
  app.use(openapi, createDocsRoute({ title: 'Parley API', prepare: describeAddress }));
  app.use(createConsoleRoute({ at: '/console', page: 'index.html', prepare: describeAddress }));
  app.use('/platform/v1', openapi);

  if (deps.paymentRoute !== undefined) app.use('/platform/v1', deps.paymentRoute);
  app.use('/platform/v1', identify, createIdentifyBadPath(identify));
  const note = (code: ErrorCode, address: string) => {
    deps.refusals.note('public', code, address);
  };
  app.use(
    createWrongPath(Object.values(ENDPOINTS)),
    storeFault,
    createErrorHandler({ log, count: deps.countRefusal, note, refuse: deps.recorder.refuse }),
  );
  return app;
}
