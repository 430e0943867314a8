import express, { Router } from 'express';
import type { Express, RequestHandler } from 'express';

import { createAdminAuthentication } from './http/authenticate-admin.ts';
import { createErrorHandler, methodNotAllowed, notFound, storeFault } from './http/error-handler.ts';
import { assignRequestId } from './http/request-context.ts';
import { requireHost } from './http/require-host-and-https.ts';
import { serveAdminEndpoints } from './http/serve-endpoints.ts';
import { ADMIN_ENDPOINTS } from './admin/admin-endpoints.ts';
import type { AdminEndpointDeps } from './admin/admin-endpoints.ts';
import { servedAdminDocument, createDocsRoute, createOpenapiRoute } from './resources/docs/docs-route.ts';
import { BOARD_PATH, createQueuesBoard } from './admin/queues/board.ts';
import { createAdminSignInRoute } from './admin/sign-in/sign-in-route.ts';

export type AdminDeps = AdminEndpointDeps & {
  /** `ADMIN_TOKEN`. */
  adminToken: string;
  metrics: { contentType: string; render(): Promise<string> };
  /** What `GET /health/deep` answers. */
  deepHealth(): Promise<object>;
};

const setSafeHeaders: RequestHandler = (_req, res, next) => {
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Referrer-Policy', 'no-referrer');
  res.setHeader('Cache-Control', 'no-store');
  next();
};

/** The OpenAPI document of the administration and its page, at `/admin/openapi.json` and `/admin/docs/`. */
function createAdminDocs(): Router {
  const prepare: RequestHandler = (_req, _res, next) => {
    next();
  };
  return Router().use(
    createOpenapiRoute(servedAdminDocument, { cacheControl: 'no-store', prepare }),
    createDocsRoute({ title: 'Parley administration API', prepare }),
  );
}

/** What `ADMIN_PORT` serves (docs/spec/contract.md sections 1 and 7): administration, Bull Board, metrics and deep health. */
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
  app.use('/admin/v1', authentication.requireToken, serveAdminEndpoints(ADMIN_ENDPOINTS, deps));
  app.use(['/admin/docs', '/admin/openapi.json'], authentication.requirePageAccess);
  app.use('/admin', createAdminDocs());
  app.use(notFound);
  app.use(storeFault, createErrorHandler({ log: deps.log }));
  return app;
}
