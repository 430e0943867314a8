import express from 'express';
import type { RequestHandler } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';

/** This service's forms have one short field, and anyone can send them. */
const FORM_BYTES_MAX = 4_096;

/** Reads a page's form into `req.body`; an unreadable form gets 400 `invalid_request`. */
export function readForm(): RequestHandler {
  const read: RequestHandler = express.urlencoded({ extended: false, limit: FORM_BYTES_MAX });
  return (req, res, next) => {
    read(req, res, (cause?: unknown) => {
      if (cause === undefined) next();
      else next(new ServiceError('invalid_request', 'The form could not be read.', { cause }));
    });
  };
}
