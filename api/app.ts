import cors from 'cors';
import express from 'express';
import type { Express, RequestHandler, Router } from 'express';

import type { Config } from '../shared/config/load-config.ts';
import type { ServiceError } from '../shared/errors/service-error.ts';
import type { LedgerRepository } from '../shared/infra/mongo/ledger-repository.ts';
import type { RecordStore } from '../shared/infra/redis/record-store.ts';
import type { StreamReader } from '../shared/infra/redis/stream-reader.ts';
import type { IngressMetrics } from '../shared/infra/metrics/registry.ts';
import type { Readiness } from '../shared/lifecycle/readiness.ts';
import type { Accept } from './admission/accept.ts';
import { setAddressHeaders } from './admission/limit-headers.ts';
import type { Recall } from './admission/recall.ts';
import { createReceiveBatch } from './batches/receive-batch.ts';
import { createErrorHandler, notFound } from './middleware/error-handler.ts';
import { createIdentify } from './middleware/identify.ts';
import { ignoreAnyMatch } from './middleware/ignore-any-match.ts';
import { createMeasure } from './middleware/measure.ts';
import { assignRequestId } from './middleware/request-context.ts';
import { createReplay } from './middleware/replay.ts';
import type { ReplayDeps } from './middleware/replay.ts';
import { requireHost } from './middleware/require-host.ts';
import { requireHttps } from './middleware/require-https.ts';
import { createServeEndpoints } from './middleware/serve-endpoints.ts';
import { storeFault } from './middleware/store-fault.ts';
import type { RelayTimes } from './relay/forward.ts';
import type { RelayHub } from './relay/hub.ts';
import { createAuditLogRoute } from './routes/audit-log/route.ts';
import type { AuditLogRouteDeps } from './routes/audit-log/route.ts';
import { createBatchesRoute } from './routes/batches/route.ts';
import type { BatchesRouteDeps } from './routes/batches/route.ts';
import { createBillingRoute } from './routes/billing/route.ts';
import type { BillingRouteDeps } from './routes/billing/route.ts';
import { createChatCompletionsRoute } from './routes/chat-completions/route.ts';
import { createRespond } from './routes/chat/respond.ts';
import { createChatRoute } from './routes/chat/route.ts';
import { createModelsRoute } from './routes/models/route.ts';
import { createChatRequestsRoute } from './routes/chat-requests/route.ts';
import { createResumeRoute } from './routes/chat-stream/resume.ts';
import { createChatStreamRoute } from './routes/chat-stream/route.ts';
import { createDocsRoute } from './routes/docs/route.ts';
import { createEntitiesRoute } from './routes/entities/route.ts';
import type { EntitiesRouteDeps } from './routes/entities/route.ts';
import { createHealthRoute } from './routes/health/route.ts';
import { createComplianceRoute } from './routes/compliance/route.ts';
import type { ComplianceRouteDeps } from './routes/compliance/route.ts';
import { createKeysRoute } from './routes/keys/route.ts';
import type { KeysRouteDeps } from './routes/keys/route.ts';
import { createOpenapiRoute } from './routes/openapi/route.ts';
import { createUsageRoute } from './routes/usage/route.ts';
import type { UsageRouteDeps } from './routes/usage/route.ts';
import { createWebhooksRoute } from './routes/webhooks/route.ts';
import type { WebhooksRouteDeps } from './routes/webhooks/route.ts';

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
