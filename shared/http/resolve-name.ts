import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';

/** Empty where the host has no address. Never rejects. */
export type ResolveName = (host: string) => Promise<LookupAddress[]>;

export interface TenantResolverOptions {
  /** A name that takes longer has no address. */
  limitMs?: number;
  /** Names in this machine's hosts file count as well. */
  allowLocalNames: boolean;
  /** `address:port` of name servers; those of the system by default. */
  servers?: readonly string[];
}

const LIMIT_MS = 5_000;
const FIRST_TRY_MS = 1_500;
/** RFC 6761, section 6.3: these names are loopback, whatever a name server says. */
const LOCALHOST = /(^|\.)localhost$/i;
const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * Resolves names that tenants have given. The system's `getaddrinfo` runs on the four threads that all file and name
 * look-ups share, so a silent name server would stop every other look-up of the process, providers' included. These
 * look-ups use sockets of their own and end after `limitMs`.
 */
export function createTenantResolver(options: TenantResolverOptions): ResolveName {
  const { limitMs = LIMIT_MS, allowLocalNames, servers } = options;

  async function ask(host: string): Promise<{ found: LookupAddress[]; isSilent: boolean }> {
    const resolver = new Resolver({ timeout: FIRST_TRY_MS, tries: 2 });
    if (servers !== undefined) resolver.setServers(servers);
    const limit = setTimeout(() => {
      resolver.cancel();
    }, limitMs);
    const [four, six] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    clearTimeout(limit);
    const found = [
      ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
      ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
    ];
    const codes = [four, six].map((one) => (one.status === 'rejected' ? errorCodeOf(one.reason) : ''));
    return { found, isSilent: codes.some((code) => code === 'ETIMEOUT' || code === 'ECANCELLED') };
  }

  return async (host) => {
    if (LOCALHOST.test(host)) return [...LOOPBACK];
    const { found, isSilent } = await ask(host);
    // getaddrinfo reads the hosts file but also asks the name servers: never where these are silent.
    if (found.length > 0 || isSilent || !allowLocalNames) return found;
    return lookup(host, { all: true, order: 'verbatim' }).catch(() => []);
  };
}

const CAUSES_MAX = 4;

/**
 * The code of the first network fault, or of its cause; empty where none has one. Libraries give their errors the field
 * without a value, or a number that means something else.
 */
export function errorCodeOf(error: unknown, depth = 0): string {
  const inner = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  if (typeof inner !== 'object' || inner === null || depth > CAUSES_MAX) return '';
  if ('code' in inner && typeof inner.code === 'string') return inner.code;
  return 'cause' in inner ? errorCodeOf(inner.cause, depth + 1) : '';
}

const FRESH_MS = 30_000;

/** Looks up providers' names for new connections: one at a time for a name, kept for 30 s. */
export function createCachedLookup(
  resolve = (host: string): Promise<LookupAddress[]> => lookup(host, { all: true, order: 'verbatim' }),
): LookupFunction {
  const known = new Map<string, { addresses: Promise<LookupAddress[]>; at: number }>();

  function addressesOf(host: string): Promise<LookupAddress[]> {
    const last = known.get(host);
    if (last !== undefined && performance.now() - last.at < FRESH_MS) return last.addresses;
    const addresses = resolve(host);
    known.set(host, { addresses, at: performance.now() });
    addresses.catch(() => known.delete(host));
    return addresses;
  }

  return (host, { all, family }, callback) => {
    addressesOf(host).then(
      (addresses) => {
        const fitting = addresses.filter((one) => (family !== 4 && family !== 6) || one.family === family);
        const [first] = fitting;
        if (first === undefined) callback(Object.assign(new Error('No address'), { code: 'ENOTFOUND' }), '');
        else if (all === true) callback(null, fitting);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => {
        callback(error as Error, '');
      },
    );
  };
}
