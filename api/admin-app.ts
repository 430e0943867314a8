import express, { Router } from 'express';
import type { Express, RequestHandler, Response } from 'express';

import type { Config } from '../shared/config/settings.ts';
import type { AdminToken } from '../shared/config/secret-settings.ts';
import type { Space } from '../shared/contracts/space.ts';
import type { ErrorCode } from '../shared/errors/codes.ts';
import { mayReadMetrics } from '../shared/metrics/registry.ts';
import type { MetricsAccess } from '../shared/metrics/registry.ts';
import type { AdminAuditRepository } from '../shared/mongo/administration/admin-audit-repository.ts';
import type { AdminAccessStore } from '../shared/redis/stores/admin-access-store.ts';
import type { QueueHistory } from '../shared/redis/stores/queue-history.ts';
import { BOARD_PATH, createAdminFailures, createAdminAuthentication } from './admin/access/authenticate-admin.ts';
import { createAdminSessions } from './admin/access/admin-session.ts';
import { createAdminSignInRoute } from './admin/access/sign-in-route.ts';
import { createErrorHandler, methodNotAllowed, storeFault } from './http/error-handler.ts';
import { createReplay } from './http/idempotent-replay.ts';
import type { ReplayDeps } from './http/idempotent-replay.ts';
import type { RefusalWatch } from './http/refusal-watch.ts';
import { assignRequestId, inOneLayer } from './http/request-context.ts';
import type { Step } from './http/request-context.ts';
import { wrongAdminPath } from './http/wrong-path.ts';
import { requireClearHead, requireHttps } from './http/head-guards.ts';
import { serveAdminEndpoints } from './http/serve-endpoints.ts';
import { ADMIN_ENDPOINTS } from './admin/admin-endpoints.ts';
import type { AdminEndpointDeps } from './admin/admin-endpoints.ts';
import { createAdminAudit } from './admin/audit-log/admin-audit.ts';
import { servedAdminDocument, createDocsRoute, createOpenapiRoute } from './resources/docs-route.ts';
import { createConsoleRoute } from './resources/console-route.ts';
import { createQueuesBoard, sayErrors } from './admin/queues/board.ts';
import type { BoardQueues } from './admin/queues/board.ts';

/** An Idempotency-Key belongs to the tenant of the path, so that the tenant's deletion finds its answer; or to none. */
const spaceOf = ({ req }: Response): Space => ({ tenantId: String(req.params['tenantId'] ?? 'none'), mode: 'live' });

export type AdminDeps = AdminEndpointDeps & {
  idempotency: ReplayDeps['idempotency'];
  http: Pick<Config['http'], 'trustProxy' | 'requireHttps'>;
  adminTokens: readonly AdminToken[];
  adminAccess: AdminAccessStore;
  adminAudit: AdminAuditRepository;
  /** The queues that the board shows in addition to `queues`. */
  backgroundQueues: BoardQueues['background'];
  queueHistory: QueueHistory;
  metricsAccess: MetricsAccess;
  refusals: Pick<RefusalWatch, 'note'>;
  metrics: { contentType: string; render(): Promise<string> };
  deepHealth(): Promise<object>;
};

const setSafeHeaders: Step = (_req, res) => {
  res.setHeader('X-Content-Type-Options', 'nosniff');
  // With `no-referrer` a browser names no origin of its own forms, which assertSameOrigin asks for.
  res.setHeader('Referrer-Policy', 'same-origin');
  res.setHeader('Cache-Control', 'no-store');
};

const prepare: RequestHandler = (_req, _res, next) => {
  next();
};

/** The OpenAPI document of the administration and its page, at `/admin/openapi.json` and `/admin/docs/`. */
function createAdminDocs(): Router {
  return Router().use(
    createOpenapiRoute(servedAdminDocument, { cacheControl: 'no-store', prepare }),
    createDocsRoute({ title: 'Parley administration API', prepare }),
  );
}

/** Served on `ADMIN_PORT` (docs/spec.md#processes): administration, board, metrics and deep health. */
export function createAdminApp(deps: AdminDeps): Express {
  const { http, adminTokens: tokens, adminAccess: store, clock, log } = deps;
  const audit = createAdminAudit(deps);
  const failures = createAdminFailures({
    store,
    clock,
    onKeptOut: (req, res) => audit.note(req, res, 'refused_tokens'),
  });
  const sessions = createAdminSessions({ tokens, store, clock });
  const authentication = createAdminAuthentication({ tokens, failures, sessions });
  const { requireToken, requirePageAccess } = authentication;
  const requireSafeTransport: RequestHandler = (req, res, next) => {
    if (http.requireHttps) requireHttps(req, res);
    next();
  };
  /** A caller that needs no administration token sends none in clear text, so plain HTTP is enough. */
  const mayWatch = Router().use(
    (req, _res, next) => {
      next(mayReadMetrics(req, deps.metricsAccess) ? 'router' : undefined);
    },
    requireSafeTransport,
    requireToken,
  );

  const app = express();
  app.disable('x-powered-by').disable('etag').set('trust proxy', http.trustProxy);
  app.use(inOneLayer(assignRequestId, requireClearHead, setSafeHeaders));

  app
    .route('/metrics')
    .get(mayWatch, async (_req, res) => {
      const text = await deps.metrics.render();
      res.setHeader('Content-Type', deps.metrics.contentType);
      res.end(text);
    })
    .all(methodNotAllowed('GET'));
  app
    .route('/health/deep')
    .get(mayWatch, async (_req, res) => {
      res.json(await deps.deepHealth());
    })
    .all(methodNotAllowed('GET'));

  app.use(requireSafeTransport);
  app.use(createConsoleRoute({ at: '/admin/console', page: 'admin.html', prepare }));
  app.use(createAdminSignInRoute({ findToken: authentication.findToken, sessions, audit }));
  app.use(`${BOARD_PATH}/api`, sayErrors);
  app.use(
    BOARD_PATH,
    requirePageAccess,
    createQueuesBoard({ chat: deps.queues, background: deps.backgroundQueues }, { history: deps.queueHistory, clock }),
  );
  app.use('/admin/v1', requireToken, serveAdminEndpoints(ADMIN_ENDPOINTS, deps, audit, createReplay(deps, spaceOf)));
  app.use(['/admin/docs', '/admin/openapi.json'], requirePageAccess);
  app.use('/admin', createAdminDocs());
  app.use(wrongAdminPath);
  const note = (code: ErrorCode, address: string) => {
    deps.refusals.note('admin', code, address);
  };
  app.use(storeFault, createErrorHandler({ log, note }));
  return app;
}
