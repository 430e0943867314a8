import { isIP } from 'node:net';

import type { Request } from 'express';
import ipaddr from 'ipaddr.js';

import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Step } from './request-context.ts';

/** Headers of which Node uses the first line, while a proxy in front of it may have used the last. */
const SINGLE: readonly string[] = ['host', 'authorization'];

/** RFC 3986 section 3.2, without the characters that no `Host` may contain. Empty: the request names no host. */
const HOST = /^[\w.~!$&'()*+,;=:%[\]-]*$/;

function repeatedIn(rawHeaders: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const { length } = rawHeaders[index] ?? '';
    // Skips names of other lengths cheaply.
    if (length !== 4 && length !== 13) continue;
    const name = rawHeaders[index]?.toLowerCase() ?? '';
    if (!SINGLE.includes(name)) continue;
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}

/** The reason why a head may mean different things here and elsewhere; undefined: it cannot. */
function faultOfHead({ headers, httpVersion, rawHeaders }: Request): string | undefined {
  const { host, 'transfer-encoding': coding } = headers;
  // RFC 9112 section 3.2. Node's own refusal would lack the uniform error object.
  if (host === undefined && httpVersion === '1.1') return 'The request has no Host header; HTTP/1.1 asks for one.';
  if (host !== undefined && !HOST.test(host)) return 'The Host header is no host; send one name or address.';
  const repeated = repeatedIn(rawHeaders);
  if (repeated !== undefined) return `The request has more than one ${repeated} header; send one.`;
  if (coding === undefined) return undefined;
  // RFC 9112 section 6.1, for both: it is unclear where such a body ends, and no other coding is decoded here.
  if (httpVersion !== '1.1')
    return 'The request has a Transfer-Encoding, which is for HTTP/1.1; send a Content-Length.';
  return coding.toLowerCase() === 'chunked' ? undefined : 'The Transfer-Encoding must be chunked and nothing else.';
}

/** Refuses a head that a proxy may have read differently, and closes the connection, to prevent request smuggling. */
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

/** Tells whether a proxy on this machine has passed on somebody else's request. */
function isForwarded({ headers }: Request): boolean {
  for (const name in headers) if (name === 'forwarded' || name.startsWith('x-forwarded-')) return true;
  return false;
}

/** A shortcut: if nothing was forwarded, Express gets the same `secure` and `ip`, but checks every proxy first. */
function isPlainFromHere(req: Request): boolean {
  return !isForwarded(req) && !('encrypted' in req.socket) && isLoopback(req.socket.remoteAddress ?? '');
}

/** A year, as RFC 6797 and browsers' preload lists suggest. */
const HSTS = 'max-age=31536000';

/**
 * Refuses plain HTTP unless it comes from this machine (docs/spec.md#https). Express believes
 * `X-Forwarded-Proto` and `X-Forwarded-For` only from trusted proxies, so `secure` and `ip` are reliable.
 */
export const requireHttps: Step = (req, res) => {
  if (isPlainFromHere(req)) return;
  if (!req.secure)
    throw new ServiceError('invalid_request', 'HTTPS is required; send the request to an https:// address.');
  // RFC 6797 section 7.2: only over HTTPS.
  res.setHeader('Strict-Transport-Security', HSTS);
};

/** Some proxies write the client's port into `X-Forwarded-For`, and put IPv6 addresses in brackets. */
const ADDRESS = /^(?:\[([^\]]*)\]|(\d[\d.]*))(?::\d+)?$/;

/**
 * The unit by which failed authentications are counted: an IPv4 address (also if mapped to IPv6), or the /64 of an IPv6
 * address, which belongs to one customer. Ports are dropped, or each connection would have its own count. Text that is
 * no address is `unknown`: a client whose proxy forwards invented ones has one count for them all.
 */
export function addressBlockOf(ip: string | undefined): string {
  const [, bracketed, plain] = ADDRESS.exec(ip ?? '') ?? [];
  const text = (bracketed ?? plain ?? ip ?? '').replace(/%.*$/, '');
  if (isIP(text) === 0) return 'unknown';
  const address = ipaddr.process(text);
  if (!(address instanceof ipaddr.IPv6)) return address.toString();
  const groups = address.parts.slice(0, 4).map((group) => group.toString(16));
  return `${groups.join(':')}::/64`;
}
