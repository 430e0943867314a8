import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';

/** A segment of the path, decoded. Throws where the route has no such segment. */
export function pathParam(req: Request, name: string): string {
  const value = req.params[name];
  if (typeof value !== 'string') throw new Error(`The path has no :${name}`);
  return value;
}

const NAMES = {
  ten: 'tenant',
  key: 'API key',
  cs: 'checkout',
  whk: 'webhook',
  dlv: 'delivery',
  batch: 'batch',
  exp: 'export',
  del: 'deletion',
} as const;

/**
 * The id in the path, checked for its form: what cannot be an id is as unknown as one that does not exist, and never
 * reaches a database.
 */
export function pathId(req: Request, name: string, prefix: keyof typeof NAMES): string {
  const value = req.params[name];
  if (typeof value !== 'string' || !new RegExp(`^${prefix}_[0-9A-Za-z]{24}$`).test(value)) {
    throw new ServiceError('not_found', `There is no ${NAMES[prefix]} with this id.`);
  }
  return value;
}
