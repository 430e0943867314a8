import { isIP } from 'node:net';

import ipaddr from 'ipaddr.js';

/** Hosts of the Internet have these addresses; mapped, translated and local ones lie outside. */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');

/** An IPv4 address in the interface part (ISATAP, RFC 5214): some routers tunnel to it. */
function isIsatap(bytes: readonly number[]): boolean {
  const [first, second, third, fourth] = bytes.slice(8, 12);
  return (first === 0 || first === 2) && second === 0 && third === 0x5e && fourth === 0xfe;
}

/**
 * Accepts the IP address of one host on the Internet. Refuses private, shared, link-local, multicast, documentation and
 * reserved ranges, and every form of IPv6 that carries an IPv4 address (mapped, compatible, 6to4, Teredo, NAT64,
 * ISATAP), public or not.
 */
export function isPublicAddress(text: string): boolean {
  // Stricter than ipaddr.js, which also reads `010.1`; a zone (`fe80::1%eth0`) names an interface of this machine.
  if (isIP(text) === 0 || text.includes('%')) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== 'unicast') return false;
  return address.kind() === 'ipv4' || (address.match(GLOBAL_UNICAST) && !isIsatap(address.toByteArray()));
}

/** Endings of names that only a network of one's own knows (RFC 6761, 6762, 8375, 9476; Kubernetes). */
const PRIVATE_NAME = /\.(?:local|localhost|internal|lan|home\.arpa|test|svc)\.?$/i;

/** Networks of one's own; of the other ranges some are routed, such as those of IPv6 that carry public IPv4 addresses. */
const PRIVATE_RANGES: ReadonlySet<string> = new Set([
  'private',
  'loopback',
  'unspecified',
  'linkLocal',
  'uniqueLocal',
  'carrierGradeNat',
]);

/** Tells whether a URL's host is a server of a private network by its name alone: nothing is looked up. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  // A mapped address is as private as the IPv4 address in it.
  if (isIP(host) !== 0) return PRIVATE_RANGES.has(ipaddr.process(host).range());
  return !host.includes('.') || PRIVATE_NAME.test(host);
}

export type ReadWebhookUrl = { ok: true; url: URL; host: string } | { ok: false; fault: string };

/** Names that never belong to a host of the Internet, whatever a resolver says. */
const LOCAL_NAMES = ['localhost', 'local', 'internal', 'intranet', 'lan', 'home', 'corp', 'private', 'home.arpa'];

function isLocalName(host: string): boolean {
  return !host.includes('.') || LOCAL_NAMES.some((name) => host === name || host.endsWith(`.${name}`));
}

/** Lower ports belong to other services, which must not be reached in our name. */
function isAllowedPort(port: string): boolean {
  return port === '' || port === '443' || Number(port) >= 1_024;
}

/**
 * Refuses a receiver's address that cannot be public, as far as the text tells; each attempt checks what its name
 * resolves to (webhook-client.ts). The URL parser has turned `0x7f.1`, `2130706433` and the like into the addresses
 * they mean. The fault completes the sentence "url …".
 */
export function readWebhookUrl(text: string, allowPrivate: boolean): ReadWebhookUrl {
  const refuse = (fault: string): ReadWebhookUrl => ({ ok: false, fault });
  const url = URL.parse(text);
  if (url === null || url.hostname === '') return refuse('must be an absolute URL');
  if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:'))
    return refuse('must begin with https://');
  if (url.username !== '' || url.password !== '') return refuse('must not hold a user name or password');
  if (url.hash !== '') return refuse('must not have a fragment');
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.+$/, '');
  if (host === '') return refuse('must name a host');
  if (allowPrivate) return { ok: true, url, host };
  if (!isAllowedPort(url.port)) return refuse('must use port 443 or one from 1024 up');
  const isRefused = isIP(host) === 0 ? isLocalName(host) : !isPublicAddress(host);
  return isRefused ? refuse('must name a host on the public Internet') : { ok: true, url, host };
}
