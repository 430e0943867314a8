import type { RequestHandler } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';

/** RFC 9112 section 3.2. Node would refuse such a request by itself, without the uniform error object. */
export const requireHost: RequestHandler = (req, res, next) => {
  if (req.headers.host !== undefined || req.httpVersion !== '1.1') {
    next();
    return;
  }
  res.setHeader('Connection', 'close');
  throw new ServiceError('invalid_request', 'The request has no Host header; HTTP/1.1 asks for one.');
};
