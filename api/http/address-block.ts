import { isIP } from 'node:net';

import ipaddr from 'ipaddr.js';

/**
 * What failed authentications are counted by: an IPv4 address, or the /64 of an IPv6 address, which one customer has.
 * An IPv4 address that is mapped into IPv6 is that of IPv4; a text that is no address is returned as it is.
 */
export function addressBlockOf(ip: string | undefined): string {
  if (ip === undefined) return 'unknown';
  if (isIP(ip) === 0) return ip;
  const address = ipaddr.process(ip.replace(/%.*$/, ''));
  if (!(address instanceof ipaddr.IPv6)) return address.toString();
  const groups = address.parts.slice(0, 4).map((group) => group.toString(16));
  return `${groups.join(':')}::/64`;
}
