import type { Cluster, Command, Redis } from 'ioredis';

export class RedisTimeoutError extends Error {
  override readonly name = 'RedisTimeoutError';
}

/** Rejected calls: a client's own words change with its versions. */
const rejections = new WeakSet<object>();

/** Remembers rejections, pipelines' and BullMQ's included, and connections' errors for `isRedisFault`. */
export function rememberRejections<Client extends Redis | Cluster>(client: Client): Client {
  client.on('error', (error: Error) => rejections.add(error));
  const send = client.sendCommand.bind(client);
  client.sendCommand = (command: Command, ...rest: unknown[]) => {
    command.promise.catch((error: unknown) => {
      if (typeof error === 'object' && error !== null) rejections.add(error);
    });
    return Reflect.apply(send, client, [command, ...rest]);
  };
  return client;
}

/**
 * A Redis with these answers cannot serve: full, starting, failing over, stuck in a script, or refusing this caller.
 * EXECABORT: a command of a transaction met one of them, or a fault of our own.
 */
const UNABLE =
  /^(-?OOM|LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|MISCONF|NOREPLICAS|UNBLOCKED|EXECABORT|NOAUTH|WRONGPASS|NOPERM|ERR max number of clients) /;

function isUnable(error: Error): boolean {
  if (!UNABLE.test(error.message)) return false;
  const previous: unknown = Reflect.get(error, 'previousErrors');
  return !Array.isArray(previous) || previous.length === 0 || previous.some(isRedisFault);
}

/** Redis is away or cannot serve. Every rejection counts, except for a server's own answer. */
export function isRedisFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name === 'ReplyError') return isUnable(error);
  // BullMQ checks for a closed connection before it calls.
  return error instanceof RedisTimeoutError || error.name === 'ConnectionClosedError' || rejections.has(error);
}

export interface Tried {
  /** The latest error; a cluster's has that of its latest node within. */
  error: unknown;
  isEncrypted: boolean;
}

const UNKNOWN = 'Redis does not answer; check REDIS_URL and that the server runs and accepts connections.';
const NO_TLS =
  'Redis does not answer over TLS; check REDIS_URL: with rediss the port has to speak TLS, one that does not is of redis.';
/** A server that asks for a certificate usually closes before its message arrives. */
const CUT_OVER_TLS =
  'Redis ends the connection over TLS; check REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE, which it asks for unless it has tls-auth-clients no, and REDIS_URL: with rediss the port has to speak TLS.';
const CUT =
  'Redis ends the connection at once; check REDIS_URL: redis reaches no port that speaks TLS, which is of rediss.';

const UNKNOWN_HOST = 'The name of the Redis host is not known here; check the host in REDIS_URL.';

/** The sentence of `redisStartFault` describes a server that may come back. */
export const mayReturn = (fault: string): boolean => [UNKNOWN, UNKNOWN_HOST].includes(fault);

/** Tests the server's reply, or the code of Node.js or OpenSSL; the first match counts. */
const FAULTS: readonly (readonly [RegExp, string])[] = [
  [/\bNOAUTH\b/, 'Redis asks for a password; write it into REDIS_URL, as in redis://:PASSWORD@HOST:6379.'],
  [
    /\bWRONGPASS\b|invalid password|AUTH <password> called without/i,
    'Redis refuses the user or the password; check REDIS_URL, and write @, :, /, # and ? of a password percent-encoded.',
  ],
  [
    /cluster support disabled/,
    'The server is no node of a Redis Cluster; check REDIS_URL: redis:// or rediss:// is for a single server.',
  ],
  [
    /unknown command '?`?sentinel/i,
    'The server is no sentinel; check REDIS_URL: redis+sentinel:// names sentinels (port 26379), redis:// a single server.',
  ],
  [/\b(ENOTFOUND|EAI_AGAIN)\b/, UNKNOWN_HOST],
  [/\bERR_SSL_WRONG_VERSION_NUMBER\b/, NO_TLS],
  [
    /\b(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?)\b/,
    'Redis shows a certificate of an authority that is not known here; name the authority in REDIS_TLS_CA_FILE.',
  ],
  [
    /\bERR_SSL_\S*ALERT_/,
    'Redis asks for a certificate that it knows; check REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE.',
  ],
  [
    /\bERR_TLS_CERT_ALTNAME_INVALID\b/,
    'The certificate of Redis does not name the host that was called; check the host in REDIS_URL.',
  ],
  [/\bCERT_(HAS_EXPIRED|NOT_YET_VALID)\b/, 'The certificate of Redis is not valid today. Renew it.'],
];

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const code = 'code' in error ? String(error.code) : '';
  const node = 'lastNodeError' in error ? textOf(error.lastNodeError) : '';
  return `${code} ${error.message} ${node}`;
}

/**
 * One sentence for the operator, with the setting to check. It never shows the address, which may have a password. A
 * sentinel gives only a message, without a code of TLS.
 */
export function redisStartFault({ error, isEncrypted }: Tried): string {
  const text = textOf(error);
  const known = FAULTS.find(([pattern]) => pattern.test(text));
  if (known !== undefined) return known[1];
  // A plain server takes TLS for the start of a command and silently waits for the end.
  if (isEncrypted && /ECONNRESET|EPIPE/.test(text)) return CUT_OVER_TLS;
  if (isEncrypted && (error === undefined || /ETIMEDOUT|closed/.test(text))) return NO_TLS;
  return !isEncrypted && text.includes('ECONNRESET') ? CUT : UNKNOWN;
}

/** A cluster's error may say only that no node could be asked; this finds the cause. */
export function reasonOf(error: unknown): unknown {
  return error instanceof Error && 'lastNodeError' in error && error.lastNodeError instanceof Error
    ? error.lastNodeError
    : error;
}
