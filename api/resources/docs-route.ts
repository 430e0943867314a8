import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { createHash } from 'node:crypto';

import { Router } from 'express';
import type { RequestHandler, Response } from 'express';

import { methodNotAllowed } from '../http/error-handler.ts';
import type { OpenApiDocument } from '../openapi/document.ts';

/** A page loads only from this service and runs no inline script, so a pasted key reaches the API and nobody else. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** All addresses are relative, so the page works behind any host and prefix. */
function renderDocs(title: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" type="image/png" href="favicon-32x32.png">
<link rel="stylesheet" href="swagger-ui.css">
</head>
<body>
<noscript>This page needs JavaScript; the document itself is at <a href="../openapi.json">openapi.json</a>.</noscript>
<div id="swagger-ui"></div>
<script src="swagger-ui-bundle.js"></script>
<script src="initializer.js"></script>
</body>
</html>
`;
}

/** `validatorUrl`: Swagger UI would otherwise send the document to a validator on the Internet. */
const DOCS_INITIALIZER = `SwaggerUIBundle({
  url: '../openapi.json',
  dom_id: '#swagger-ui',
  presets: [SwaggerUIBundle.presets.apis],
  layout: 'BaseLayout',
  validatorUrl: null,
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  persistAuthorization: false,
});
`;

const ASSETS = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'] as const;
/** The package's version is the ETag, because a file's time is often the time of unpacking. */
const ASSET_SECONDS = 3_600;

export const setPageHeaders: RequestHandler = (_req, res, next) => {
  res.setHeader('Content-Security-Policy', PAGE_POLICY);
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Referrer-Policy', 'no-referrer');
  next();
};

function sendText(res: Response, type: 'html' | 'js', text: string): void {
  res.setHeader('Cache-Control', 'no-cache');
  res.type(type).send(text);
}

/** Finds the package wherever npm has put it. */
function findPackage(): { root: string; etag: string } {
  const require = createRequire(import.meta.url);
  const file = require.resolve('swagger-ui-dist/package.json');
  // npm never installs a package without a version.
  const { version } = require(file) as { version: string };
  return { root: dirname(file), etag: `"${version}"` };
}

/** `GET /docs/` loads nothing from outside (docs/decisions/0022-openapi-document.md). */
export function createDocsRoute({ title, prepare }: { title: string; prepare: RequestHandler }): Router {
  const { root, etag } = findPackage();
  const router = Router({ strict: true });
  const serve = (path: string, handler: RequestHandler) => {
    router.route(path).get(prepare, setPageHeaders, handler).all(methodNotAllowed('GET'));
  };

  // Relative, so that the redirect works behind a proxy's prefix.
  serve('/docs', (_req, res) => {
    res.redirect(308, 'docs/');
  });
  serve('/docs/', (_req, res) => {
    sendText(res, 'html', renderDocs(title));
  });
  serve('/docs/initializer.js', (_req, res) => {
    sendText(res, 'js', DOCS_INITIALIZER);
  });
  for (const name of ASSETS) {
    serve(`/docs/${name}`, (_req, res, next) => {
      res.setHeader('ETag', etag);
      res.sendFile(name, { root, maxAge: ASSET_SECONDS * 1_000, cacheControl: true }, (error?: unknown) => {
        if (error !== undefined && !res.headersSent) next(error);
      });
    });
  }
  return router;
}

/** A document changes only with a new version of the service; the ETag shows a client that its copy is current. */
export const DOCUMENT_CACHE = 'public, max-age=300';

/** `GET /openapi.json`: the document of an API, created once. */
export function createOpenapiRoute(
  document: () => Promise<ServedDocument>,
  { cacheControl, prepare }: { cacheControl: string; prepare: RequestHandler },
): Router {
  const send: RequestHandler = async (_req, res) => {
    const { text, etag } = await document();
    res.setHeader('Cache-Control', cacheControl);
    res.setHeader('ETag', etag);
    res.type('json').send(text);
  };
  const router = Router();
  router.route('/openapi.json').get(prepare, send).all(methodNotAllowed('GET'));
  return router;
}

export interface ServedDocument {
  text: string;
  etag: string;
}

function once(create: () => Promise<OpenApiDocument>): () => Promise<ServedDocument> {
  let made: Promise<ServedDocument> | undefined;
  const make = async () => {
    const text = JSON.stringify(await create());
    return { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` };
  };
  return () => (made ??= make());
}

/**
 * The document of the public API, the same for the life of the process. Creating it takes some 0.2 s, so the ingress
 * does it before it listens. Tests that only compose an ingress do not load the generator.
 */
export const servedDocument = once(async () => (await import('../openapi/public-api.ts')).createDocument());

/** The document of the administration, created on the first request for it. */
export const servedAdminDocument = once(async () => (await import('../openapi/admin-api.ts')).createAdminDocument());
