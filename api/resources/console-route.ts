import { existsSync, readdirSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, extname, join } from 'node:path';

import express, { Router } from 'express';
import type { RequestHandler } from 'express';

import { methodNotAllowed } from '../http/error-handler.ts';
import { setPageHeaders } from './docs-route.ts';

/** The output of `npm run build`, beside the package's own file. */
const BUILT = join(dirname(findPackageJSON('..', import.meta.url) ?? ''), 'console', 'dist');

/** One of the two pages that the build makes, and the folder of addresses under which it is served. */
interface Face {
  at: '/console' | '/admin/console';
  page: 'index.html' | 'admin.html';
  prepare: RequestHandler;
}

/** Sends what the build has compressed, in the form that the client likes best. */
function preferCompressed(assets: string): RequestHandler {
  const names = new Set(readdirSync(assets));
  return (req, res, next) => {
    const coding = req.acceptsEncodings('br', 'gzip');
    const name = `${req.path}${coding === 'br' ? '.br' : '.gz'}`;
    res.vary('Accept-Encoding');
    if (coding !== false && names.has(name.slice(1))) {
      res.type(extname(req.path)).setHeader('Content-Encoding', coding);
      req.url = name;
    }
    next();
  };
}

/**
 * The console (docs/guide/console.md): two static pages whose addresses are all relative, so that they work behind any
 * host and prefix. Names of assets contain a hash of their content, so a browser keeps them for good and asks for the
 * page alone. Without a build there is no console, and `/` leads to the API's document.
 */
export function createConsoleRoute({ at, page, prepare }: Face, built = BUILT): Router {
  const router = Router({ strict: true });
  const isBuilt = existsSync(join(built, page));
  const isForPage: RequestHandler = (req, res, next) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD';
    res.vary('Accept');
    next(isRead && req.accepts(['json', 'html']) === 'html' ? undefined : 'route');
  };
  const lead = (path: string, status: number, to: string, ...guards: RequestHandler[]) => {
    router.get(path, ...guards, prepare, setPageHeaders, (_req, res) => {
      res.setHeader('Cache-Control', 'no-store');
      res.redirect(status, to);
    });
  };

  // Relative, so that the redirects work behind a proxy's prefix.
  lead('/', 302, `${isBuilt ? at.slice(1) : at.replace('/console', '/docs').slice(1)}/`, isForPage);
  if (!isBuilt) return router;
  if (at === '/admin/console') lead('/admin', 302, 'admin/console/', isForPage);
  lead(at, 308, 'console/');
  router
    .route(`${at}/`)
    .get(prepare, setPageHeaders, (_req, res) => {
      res.setHeader('Cache-Control', 'no-store');
      res.sendFile(page, { root: built, cacheControl: false });
    })
    .all(methodNotAllowed('GET'));
  router.use(
    `${at}/assets`,
    prepare,
    setPageHeaders,
    preferCompressed(join(built, 'assets')),
    express.static(join(built, 'assets'), { index: false, redirect: false, immutable: true, maxAge: '1y' }),
  );
  return router;
}
