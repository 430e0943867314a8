import { createRequire } from 'node:module';
import { dirname } from 'node:path';

import { Router } from 'express';
import type { RequestHandler, Response } from 'express';

import { methodNotAllowed } from '../../http/error-handler.ts';
import { DOCS_INITIALIZER, DOCS_POLICY, renderDocs } from './docs-page.ts';

/** Of the package, these alone are served. */
const ASSETS = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'] as const;
/** They change with the package's version, which is their ETag: times of files are often those of unpacking. */
const ASSET_SECONDS = 3_600;

const setSafeHeaders: RequestHandler = (_req, res, next) => {
  res.setHeader('Content-Security-Policy', DOCS_POLICY);
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Referrer-Policy', 'no-referrer');
  next();
};

function sendText(res: Response, type: 'html' | 'js', text: string): void {
  res.setHeader('Cache-Control', 'no-cache');
  res.type(type).send(text);
}

/** Wherever npm has put the package. */
function findPackage(): { root: string; etag: string } {
  const require = createRequire(import.meta.url);
  const file = require.resolve('swagger-ui-dist/package.json');
  // npm installs no package without a version.
  const { version } = require(file) as { version: string };
  return { root: dirname(file), etag: `"${version}"` };
}

/** `GET /docs/`: the document of an API to read and to try out, without anything from outside (decision 0036). */
export function createDocsRoute({ title, prepare }: { title: string; prepare: RequestHandler }): Router {
  const { root, etag } = findPackage();
  const router = Router({ strict: true });
  const serve = (path: string, handler: RequestHandler) => {
    router.route(path).get(prepare, setSafeHeaders, handler).all(methodNotAllowed('GET'));
  };

  // Relative: behind a proxy's prefix it stays there.
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
