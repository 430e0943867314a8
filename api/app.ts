import cors from 'cors';
import express from 'express';
import type { Express, RequestHandler, Router } from 'express';

import type { Config } from '../shared/config/load-config.ts';
import type { ServiceError } from '../shared/errors/service-error.ts';
import type { LedgerRepository } from '../shared/infra/mongo/accounts/ledger-repository.ts';
import type { RecordStore } from '../shared/infra/redis/requests/record-store.ts';
import type { StreamReader } from '../shared/infra/redis/requests/stored-answers.ts';
import type { IngressMetrics } from '../shared/infra/metrics/registry.ts';
import type { Readiness } from '../shared/lifecycle/readiness.ts';
import type { Accept } from './admission/accept.ts';
import { setAddressHeaders } from './admission/limit-headers.ts';
import type { Recall } from './admission/recall.ts';
import { createReceiveBatch } from './resources/batches/receive-batch.ts';
import { createErrorHandler, notFound } from './http/error-handler.ts';
import { createIdentify } from './http/identify.ts';
import { ignoreAnyMatch } from './http/ignore-any-match.ts';
import { createMeasure } from './http/measure.ts';
import { assignRequestId } from './http/request-context.ts';
import { createReplay } from './http/replay.ts';
import type { ReplayDeps } from './http/replay.ts';
import { requireHost } from './http/require-host.ts';
import { requireHttps } from './http/require-https.ts';
import { createServeEndpoints } from './http/serve-endpoints.ts';
import { storeFault } from './http/store-fault.ts';
import type { RelayTimes } from './relay/forward.ts';
import type { RelayHub } from './relay/hub.ts';
import { createAuditLogRoute } from './resources/audit-log/route.ts';
import type { AuditLogRouteDeps } from './resources/audit-log/route.ts';
import { createBatchesRoute } from './resources/batches/route.ts';
import type { BatchesRouteDeps } from './resources/batches/route.ts';
import { createBillingRoute } from './resources/billing/route.ts';
import type { BillingRouteDeps } from './resources/billing/route.ts';
import { createChatCompletionsRoute } from './resources/chat-completions/route.ts';
import { createRespond } from './resources/chat/respond.ts';
import { createChatRoute } from './resources/chat/route.ts';
import { createModelsRoute } from './resources/models/route.ts';
import { createChatRequestsRoute } from './resources/chat-requests/route.ts';
import { createResumeRoute } from './resources/chat-stream/resume.ts';
import { createChatStreamRoute } from './resources/chat-stream/route.ts';
import { createDocsRoute } from './resources/docs/route.ts';
import { createEntitiesRoute } from './resources/entities/route.ts';
import type { EntitiesRouteDeps } from './resources/entities/route.ts';
import { createHealthRoute } from './resources/health/route.ts';
import { createComplianceRoute } from './resources/compliance/route.ts';
import type { ComplianceRouteDeps } from './resources/compliance/route.ts';
import { createKeysRoute } from './resources/keys/route.ts';
import type { KeysRouteDeps } from './resources/keys/route.ts';
import { createOpenapiRoute } from './resources/openapi/route.ts';
import { createUsageRoute } from './resources/usage/route.ts';
import type { UsageRouteDeps } from './resources/usage/route.ts';
import { createWebhooksRoute } from './resources/webhooks/route.ts';
import type { WebhooksRouteDeps } from './resources/webhooks/route.ts';

/** What the routes of the tenant's own resources use. */
type TenantRoutesDeps = Omit<
  KeysRouteDeps &
    EntitiesRouteDeps &
    UsageRouteDeps &
    BillingRouteDeps &
    AuditLogRouteDeps &
    ComplianceRouteDeps &
    WebhooksRouteDeps &
    BatchesRouteDeps &
    ReplayDeps,
  'serve'
>;

export interface AppDeps extends TenantRoutesDeps {
  http: Pick<Config['http'], 'trustProxy' | 'requireHttps' | 'corsOrigins'>;
  authenticate: RequestHandler;
  countRefusal: (error: ServiceError, res: express.Response) => Promise<ServiceError>;
  accept: Accept;
  hub: RelayHub;
  countLookup: RequestHandler;
  countRequest: RequestHandler;
  records: RecordStore;
  streams: StreamReader;
  ledger: LedgerRepository;
  recall: Recall;
  readiness: Readiness;
  metrics: IngressMetrics;
  requestTimeoutMs: number;
  /** Aborts when this ingress can wait for answers no longer. */
  stopping: AbortSignal;
  relayTimes: RelayTimes;
  /** Where payments come in without a key; undefined: none do. */
  paymentRoute: Router | undefined;
}

/** Headers a page of another origin may read. */
const EXPOSED_HEADERS = [
  'X-Request-Id',
  'X-Ignored-Fields',
  'Retry-After',
  'Location',
  'Idempotent-Replayed',
  ...['Limit', 'Remaining', 'Reset'].flatMap((part) => [`X-RateLimit-${part}-Requests`, `X-RateLimit-${part}-Tokens`]),
];

/** A preflight has no key and ends in `cors`: like every answer it names the limit, though nothing is looked up for it. */
const describePreflight: RequestHandler = (req, res, next) => {
  if (req.method === 'OPTIONS') setAddressHeaders(res);
  next();
};

/** The public side of the ingress. Opens nothing: everything it uses is handed in. */
export function createApp(deps: AppDeps): Express {
  const { http, authenticate, metrics, log } = deps;
  const app = express();
  app.disable('x-powered-by').disable('etag').set('trust proxy', http.trustProxy).set('query parser', 'simple');

  app.use(assignRequestId, createMeasure(metrics), requireHost, ignoreAnyMatch, createHealthRoute(deps.readiness));
  if (http.requireHttps) app.use(requireHttps);
  if (http.corsOrigins.length > 0)
    app.use(describePreflight, cors({ origin: http.corsOrigins, exposedHeaders: EXPOSED_HEADERS, maxAge: 600 }));

  const openapi = createOpenapiRoute();
  app.use(openapi, createDocsRoute());
  app.use('/platform/v1', openapi);

  const identify = createIdentify(authenticate);
  const respond = createRespond(deps);
  const serve = createServeEndpoints({
    ...deps,
    identify,
    replay: createReplay(deps),
    receiveBatch: createReceiveBatch(deps),
  });
  const routes = { ...deps, serve, respond };
  if (deps.paymentRoute !== undefined) app.use('/platform/v1', deps.paymentRoute);
  app.use(
    '/platform/v1',
    createChatRoute(routes),
    createChatStreamRoute(routes),
    createChatCompletionsRoute(routes),
    createResumeRoute(routes),
    createChatRequestsRoute(routes),
    createModelsRoute(routes),
    createBatchesRoute(routes),
    createKeysRoute(routes),
    createEntitiesRoute(routes),
    createUsageRoute(routes),
    createBillingRoute(routes),
    createAuditLogRoute(routes),
    createComplianceRoute(routes),
    createWebhooksRoute(routes),
    identify,
  );

  app.use(notFound, storeFault, createErrorHandler({ log, count: deps.countRefusal }));
  return app;
}
