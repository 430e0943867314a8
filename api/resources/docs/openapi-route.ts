import { Router } from 'express';
import type { RequestHandler } from 'express';

import { methodNotAllowed } from '../../http/error-handler.ts';
import type { ServedDocument } from '../../openapi/served-document.ts';

/** A document changes with a new version of the service only; the ETag tells a client that it has the current one. */
export const DOCUMENT_CACHE = 'public, max-age=300';

/** `GET /openapi.json`: the document of an API, made once. */
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
