import { Router } from 'express';
import type { RequestHandler } from 'express';

import { setAddressHeaders } from '../../admission/limit-headers.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { servedDocument } from '../../openapi/served-document.ts';

/** It changes with a new version of the service only; who asks again is told so by the ETag. */
const CACHE_CONTROL = 'public, max-age=300';

/** `GET /openapi.json`: the document of the public API, made once. It needs no key and takes from no limit. */
export function createOpenapiRoute(): Router {
  const send: RequestHandler = async (_req, res) => {
    const { text, etag } = await servedDocument();
    setAddressHeaders(res);
    res.setHeader('Cache-Control', CACHE_CONTROL);
    res.setHeader('ETag', etag);
    res.type('json').send(text);
  };
  const router = Router();
  router.route('/openapi.json').get(send).all(methodNotAllowed('GET'));
  return router;
}
