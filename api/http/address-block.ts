import { isIP } from 'node:net';

import ipaddr from 'ipaddr.js';

/** Some proxies write the port of the client into `X-Forwarded-For`, and set IPv6 addresses in brackets. */
const ADDRESS = /^(?:\[([^\]]*)\]|(\d[\d.]*))(?::\d+)?$/;

/**
 * What failed authentications are counted by: an IPv4 address, or the /64 of an IPv6 address, which one customer has.
 * An IPv4 address that is mapped into IPv6 is that of IPv4. A port is none of it: each connection would count by itself.
 * All texts that are no address are `unknown`: a client whose proxy passes on what it says has one count for all it invents.
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
