import { isIP } from 'node:net';

import { isPublicAddress } from './public-address.ts';

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
 * Reads the address of a receiver and refuses what cannot be a public one, as far as the text tells; what its name
 * resolves to is looked at with every attempt (webhook-client.ts). The URL parser has turned `0x7f.1`, `2130706433` and
 * the like into the addresses they mean. The fault completes the sentence "url …".
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
