import { isIP } from 'node:net';

import ipaddr from 'ipaddr.js';

/** Some proxies write the client's port into `X-Forwarded-For`, and put IPv6 addresses in brackets. */
const ADDRESS = /^(?:\[([^\]]*)\]|(\d[\d.]*))(?::\d+)?$/;

/**
 * The unit by which failed authentications are counted: an IPv4 address, or the /64 of an IPv6 address, which belongs
 * to one customer. An IPv4-mapped IPv6 address counts as its IPv4 address. Ports are dropped, or each connection would
 * have its own count. Any text that is not an address is `unknown`: a client whose proxy forwards invented ones has one
 * count for all of them.
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
