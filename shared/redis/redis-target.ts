interface Address {
  host: string;
  port: number;
}

function parseNodes(hosts: string, defaultPort: number): Address[] {
  return hosts.split(',').map((entry) => {
    const url = `redis://${entry}`;
    if (entry === '' || !URL.canParse(url)) {
      throw new Error(`REDIS_URL names the address "${entry}", which is not HOST:PORT.`);
    }
    const { hostname, port } = new URL(url);
    return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? defaultPort : Number(port) };
  });
}

interface Credentials {
  username?: string;
  password?: string;
}

function parseCredentials(text: string): Credentials {
  const colon = text.indexOf(':');
  const username = decodeURIComponent(colon < 0 ? text : text.slice(0, colon));
  return {
    ...(username === '' ? {} : { username }),
    ...(colon < 0 ? {} : { password: decodeURIComponent(text.slice(colon + 1)) }),
  };
}

/** PEM files. */
export interface TlsFiles {
  /** Of the authority that signed the servers' certificates. */
  ca?: string;
  /** Proves this service's identity. */
  cert?: string;
  key?: string;
}

export interface Group extends Credentials {
  nodes: Address[];
  /** `rediss+…`: over TLS; so are sentinels unless `REDIS_SENTINEL_TLS` says otherwise. */
  isEncrypted: boolean;
}

/** Separate from the servers' credentials. */
export interface SentinelAccess extends Credentials {
  isEncrypted: boolean;
}

export type RedisTarget = { files: TlsFiles } & (
  | { kind: 'single'; url: string }
  | ({ kind: 'cluster' } & Group)
  | ({ kind: 'sentinel'; name: string; sentinels: SentinelAccess } & Group)
);

/** `REDIS_URL` (docs/spec.md#stores). Throws on an impossible address or a missing master name. */
export function parseRedisUrl(whole: string): RedisTarget {
  const [url, query] = takeQuery(whole);
  const match = /^redis(s?)\+(cluster|sentinel):\/\/(?:([^@]*)@)?([^/]*)(?:\/(.*))?$/.exec(url);
  const files = filesOf(query);
  if (match === null) return { kind: 'single', url: query.size === 0 ? url : `${url}?${query.toString()}`, files };
  const [, encrypted, kind, credentials, hosts = '', path = ''] = match;
  const auth = { ...parseCredentials(credentials ?? ''), isEncrypted: encrypted === 's' };
  if (path.includes('/') || (kind === 'cluster' && path !== ''))
    throw new Error(`REDIS_URL ends in "/${path}": a cluster or sentinels have no database but 0, so name none.`);
  if (kind === 'cluster') return { kind: 'cluster', nodes: parseNodes(hosts, 6379), ...auth, files };
  if (path === '')
    throw new Error(
      'REDIS_URL with redis+sentinel:// must end in the name of the master, as in redis+sentinel://h1:26379,h2:26379/mymaster',
    );
  const sentinels = parseSentinelAccess(query, auth.isEncrypted);
  return { kind: 'sentinel', nodes: parseNodes(hosts, 26379), name: path, sentinels, ...auth, files };
}

function takeQuery(url: string): [address: string, query: URLSearchParams] {
  const at = url.indexOf('?');
  return at < 0 ? [url, new URLSearchParams()] : [url.slice(0, at), new URLSearchParams(url.slice(at + 1))];
}

/** Reads what `redisUrlOf` in shared/config wrote into the query. */
function filesOf(query: URLSearchParams): TlsFiles {
  const files: TlsFiles = {};
  for (const name of ['ca', 'cert', 'key'] as const) {
    const file = query.get(`tls_${name}`);
    if (file !== null) files[name] = file;
    query.delete(`tls_${name}`);
  }
  return files;
}

function parseSentinelAccess(query: URLSearchParams, isEncrypted: boolean): SentinelAccess {
  const [username, password, tls] = ['username', 'password', 'tls'].map(
    (name) => query.get(`sentinel_${name}`) ?? undefined,
  );
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    isEncrypted: tls === undefined ? isEncrypted : tls === 'true',
  };
}
