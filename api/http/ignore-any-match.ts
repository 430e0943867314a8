import type { RequestHandler } from 'express';

/**
 * `If-None-Match: *` asks for nothing but news that there is something: Express would answer 304 without a body to
 * every GET, lists and readiness included. Whoever has an ETag of ours sends that one.
 */
export const ignoreAnyMatch: RequestHandler = (req, _res, next) => {
  if (req.headers['if-none-match']?.trim() === '*') delete req.headers['if-none-match'];
  next();
};
