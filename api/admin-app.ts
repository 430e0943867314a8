import express, { Router } from 'express';
import type { Express, RequestHandler } from 'express';

import { createAdminAuthentication } from './http/authenticate-admin.ts';
import { createErrorHandler, methodNotAllowed, notFound } from './http/error-handler.ts';
import { readJsonBody } from './http/read-json-body.ts';
import { assignRequestId } from './http/request-context.ts';
import { requireHost } from './http/require-host.ts';
import { storeFault } from './http/store-fault.ts';
import { createAdminBreakersRoute } from './admin/breakers/route.ts';
import type { AdminBreakersDeps } from './admin/breakers/route.ts';
import { createAdminCreditsRoute } from './admin/credits/route.ts';
import type { AdminCreditsDeps } from './admin/credits/route.ts';
import { createAdminKeysRoute } from './admin/keys/route.ts';
import type { AdminKeysDeps } from './admin/keys/route.ts';
import { createAdminPackagesRoute } from './admin/packages/route.ts';
import type { AdminPackagesDeps } from './admin/packages/route.ts';
import { createAdminProvidersRoute } from './admin/providers/route.ts';
import type { AdminProvidersDeps } from './admin/providers/route.ts';
import { BOARD_PATH, createQueuesBoard } from './admin/queues-board/board.ts';
import { createAdminQueuesRoute } from './admin/queues/route.ts';
import type { AdminQueuesDeps } from './admin/queues/route.ts';
import { createAdminSettlementRoute } from './admin/settlement/route.ts';
import type { AdminSettlementDeps } from './admin/settlement/route.ts';
import { createAdminSignInRoute } from './admin/sign-in/route.ts';
import { createAdminTenantsRoute } from './admin/tenants/route.ts';
import type { AdminTenantsDeps } from './admin/tenants/route.ts';
import { createAdminTiersRoute } from './admin/tiers/route.ts';
import type { AdminTiersDeps } from './admin/tiers/route.ts';

export type AdminDeps = AdminTenantsDeps &
  AdminKeysDeps &
  AdminCreditsDeps &
  AdminPackagesDeps &
  AdminProvidersDeps &
  AdminTiersDeps &
  AdminBreakersDeps &
  AdminQueuesDeps &
  AdminSettlementDeps & {
    /** `ADMIN_TOKEN`. */
    adminToken: string;
    metrics: { contentType: string; render(): Promise<string> };
    /** What `GET /health/deep` answers. */
    deepHealth(): Promise<object>;
  };

const BODY_BYTES_MAX = 64 * 1024;
const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

const setSafeHeaders: RequestHandler = (_req, res, next) => {
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Referrer-Policy', 'no-referrer');
  res.setHeader('Cache-Control', 'no-store');
  next();
};

/** The body of the methods that have one; mount it after authentication. */
function readBody(): RequestHandler {
  const read = readJsonBody({ limitBytes: BODY_BYTES_MAX, family: 'other' });
  return (req, res, next) => {
    if (METHODS_WITH_BODY.has(req.method)) return read(req, res, next);
    next();
    return undefined;
  };
}

function createAdminInterface(deps: AdminDeps): Router {
  const router = Router();
  router.use(createAdminTenantsRoute(deps));
  router.use(createAdminKeysRoute(deps));
  router.use(createAdminCreditsRoute(deps));
  router.use(createAdminPackagesRoute(deps));
  router.use(createAdminProvidersRoute(deps));
  router.use(createAdminTiersRoute(deps));
  router.use(createAdminQueuesRoute(deps));
  return router;
}

/**
 * What `ADMIN_PORT` serves (docs/spec/contract.md sections 1 and 7): administration, Bull Board, metrics and deep
 * health.
 */
export function createAdminApp(deps: AdminDeps): Express {
  const authentication = createAdminAuthentication(deps.adminToken, deps.clock);
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(assignRequestId, requireHost, setSafeHeaders);

  app
    .route('/metrics')
    .get(async (_req, res) => {
      const text = await deps.metrics.render();
      res.setHeader('Content-Type', deps.metrics.contentType);
      res.end(text);
    })
    .all(methodNotAllowed('GET'));
  app
    .route('/health/deep')
    .get(async (_req, res) => {
      res.json(await deps.deepHealth());
    })
    .all(methodNotAllowed('GET'));

  app.use(createAdminSignInRoute(authentication));
  app.use(BOARD_PATH, authentication.requirePageAccess, createQueuesBoard(deps.queues));
  // A reset of a breaker and a requeue have no body, so their routes come before what insists on one.
  app.use(
    '/admin/v1',
    authentication.requireToken,
    createAdminBreakersRoute(deps),
    createAdminSettlementRoute(deps),
    readBody(),
    createAdminInterface(deps),
  );
  app.use(notFound);
  app.use(storeFault, createErrorHandler({ log: deps.log }));
  return app;
}
