/** What an attempt to reach Redis has shown. */
export interface Tried {
  /** The latest error; a cluster has that of its latest node within. */
  error: unknown;
  /** Whether the address asks for TLS. */
  isEncrypted: boolean;
}

const UNKNOWN = 'Redis does not answer; check REDIS_URL and that the server runs and accepts connections.';
const NO_TLS =
  'Redis does not answer over TLS; check REDIS_URL: with rediss the port has to speak TLS, one that does not is of redis.';
/** What is most often seen of a server that asks for a certificate: it has closed before its word arrives. */
const CUT_OVER_TLS =
  'Redis ends the connection over TLS; check REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE, which it asks for unless it has tls-auth-clients no, and REDIS_URL: with rediss the port has to speak TLS.';
const CUT =
  'Redis ends the connection at once; check REDIS_URL: redis reaches no port that speaks TLS, which is of rediss.';

/** By what the servers and Node.js say of it; the first that fits. */
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
  [/\b(ENOTFOUND|EAI_AGAIN)\b/, 'The name of the Redis host is not known here; check the host in REDIS_URL.'],
  [/before secure TLS connection|wrong version number/, NO_TLS],
  [
    /self-signed certificate|unable to (verify the first|get (local )?issuer) certificate/,
    'Redis shows a certificate of an authority that is not known here; name the authority in REDIS_TLS_CA_FILE.',
  ],
  [
    /alert (certificate required|unknown ca|bad certificate|handshake failure)/,
    'Redis asks for a certificate that it knows; check REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE.',
  ],
  [
    /does not match certificate's altnames/,
    'The certificate of Redis does not name the host that was called; check the host in REDIS_URL.',
  ],
  [/certificate (has expired|is not yet valid)/, 'The certificate of Redis is not valid today. Renew it.'],
];

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const node = 'lastNodeError' in error ? textOf(error.lastNodeError) : '';
  return `${error.message} ${node}`;
}

/**
 * One sentence for the operator whose Redis could not be reached, each with the setting that is to be looked at. No sentence
 * shows the address: it may have a password.
 */
export function redisStartFault({ error, isEncrypted }: Tried): string {
  const text = textOf(error);
  const known = FAULTS.find(([pattern]) => pattern.test(text));
  if (known !== undefined) return known[1];
  // A plain server waits for the end of what it takes for a command, without a word.
  if (isEncrypted && /ECONNRESET|EPIPE/.test(text)) return CUT_OVER_TLS;
  if (isEncrypted && (error === undefined || /ETIMEDOUT|closed/.test(text))) return NO_TLS;
  return !isEncrypted && text.includes('ECONNRESET') ? CUT : UNKNOWN;
}

/** What an error of a cluster was, where it says only that none of its nodes could be asked. */
export function reasonOf(error: unknown): unknown {
  return error instanceof Error && 'lastNodeError' in error && error.lastNodeError instanceof Error
    ? error.lastNodeError
    : error;
}
