import { isIP } from 'node:net';

import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Step } from './request-context.ts';

/** Fields of which Node takes the first line, and what stands before it, a proxy for example, may have taken the last. */
const SINGLE: readonly string[] = ['host', 'authorization'];

/** RFC 3986 section 3.2, without what no `Host` may have. Empty: the request names none. */
const HOST = /^[\w.~!$&'()*+,;=:%[\]-]*$/;

function repeatedIn(rawHeaders: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const { length } = rawHeaders[index] ?? '';
    // Spares the other names.
    if (length !== 4 && length !== 13) continue;
    const name = rawHeaders[index]?.toLowerCase() ?? '';
    if (!SINGLE.includes(name)) continue;
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}

/** What makes a head mean one thing here and another elsewhere; undefined: nothing does. */
function faultOfHead({ headers, httpVersion, rawHeaders }: Request): string | undefined {
  const { host, 'transfer-encoding': coding } = headers;
  // RFC 9112 section 3.2. Node would refuse it by itself, without the uniform error object.
  if (host === undefined && httpVersion === '1.1') return 'The request has no Host header; HTTP/1.1 asks for one.';
  if (host !== undefined && !HOST.test(host)) return 'The Host header is no host; send one name or address.';
  const repeated = repeatedIn(rawHeaders);
  if (repeated !== undefined) return `The request has more than one ${repeated} header; send one.`;
  if (coding === undefined) return undefined;
  // RFC 9112 section 6.1, both: where such a body ends is not sure, and no other coding is undone here.
  if (httpVersion !== '1.1')
    return 'The request has a Transfer-Encoding, which is for HTTP/1.1; send a Content-Length.';
  return coding.toLowerCase() === 'chunked' ? undefined : 'The Transfer-Encoding must be chunked and nothing else.';
}

/** Refuses a head that a proxy may have understood otherwise, and closes the connection: so begins request smuggling. */
export const requireClearHead: Step = (req, res) => {
  const fault = faultOfHead(req);
  if (fault === undefined) return;
  res.setHeader('Connection', 'close');
  throw new ServiceError('invalid_request', fault);
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
