import { isIP } from 'node:net';

import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Step } from './request-context.ts';

/** RFC 9112 section 3.2. Node would refuse such a request by itself, without the uniform error object. */
export const requireHost: Step = (req, res) => {
  if (req.headers.host !== undefined || req.httpVersion !== '1.1') return;
  res.setHeader('Connection', 'close');
  throw new ServiceError('invalid_request', 'The request has no Host header; HTTP/1.1 asks for one.');
};

function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:/, '');
  return plain === '::1' || (plain.startsWith('127.') && isIP(plain) === 4);
}

/** A proxy on this machine passes on what others send: such a request does not come from here. */
function isForwarded({ headers }: Pick<Request, 'headers'>): boolean {
  for (const name in headers) if (name === 'forwarded' || name.startsWith('x-forwarded-')) return true;
  return false;
}

/** A shortcut: if nothing was forwarded, Express finds the same `secure` and `ip`, but asks about every proxy first. */
function isPlainFromHere(req: Request): boolean {
  return !isForwarded(req) && !('encrypted' in req.socket) && isLoopback(req.socket.remoteAddress ?? '');
}

/** A year, as RFC 6797 and browsers' preload lists suggest. */
const HSTS = 'max-age=31536000';

/**
 * Refuses plain HTTP unless it comes from this machine (docs/spec/contract.md section 1). Express believes
 * `X-Forwarded-Proto` and `X-Forwarded-For` of trusted proxies only, so `secure` and `ip` can be relied on.
 */
export const requireHttps: Step = (req, res) => {
  if (isPlainFromHere(req)) return;
  if (!req.secure)
    throw new ServiceError('invalid_request', 'HTTPS is required; send the request to an https:// address.');
  // RFC 6797 section 7.2: over HTTPS alone.
  res.setHeader('Strict-Transport-Security', HSTS);
};
