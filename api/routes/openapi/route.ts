import { createHash } from 'node:crypto';

import { Router } from 'express';
import type { RequestHandler } from 'express';

import { setAddressHeaders } from '../../admission/limit-headers.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { createDocument } from '../../openapi/document.ts';

/** It changes with a new version of the service only; who asks again is told so by the ETag. */
const CACHE_CONTROL = 'public, max-age=300';

/** `GET /openapi.json`: the document of the public API, made once. It needs no key and takes from no limit. */
export function createOpenapiRoute(): Router {
  const text = JSON.stringify(createDocument());
  const etag = `"${createHash('sha256').update(text).digest('base64url')}"`;
  const send: RequestHandler = (_req, res) => {
    setAddressHeaders(res);
    res.setHeader('Cache-Control', CACHE_CONTROL);
    res.setHeader('ETag', etag);
    res.type('json').send(text);
  };
  const router = Router();
  router.route('/openapi.json').get(send).all(methodNotAllowed('GET'));
  return router;
}
