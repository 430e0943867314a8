import type { RequestHandler } from 'express';

/**
 * Where an answer does not depend on the key (unknown path, wrong method): a valid key is counted and described in the
 * headers, anything else changes nothing.
 */
export function createIdentify(authenticate: RequestHandler): RequestHandler {
  return async (req, res, next) => {
    if (req.headers.authorization !== undefined) {
      await Promise.resolve(authenticate(req, res, () => undefined)).catch(() => undefined);
    }
    next();
  };
}
