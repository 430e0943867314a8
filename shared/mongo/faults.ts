import mongoose from 'mongoose';

/** The driver's and mongoose's names for a server that is away, slow or changing its primary. */
const AWAY_NAMES: ReadonlySet<string> = new Set([
  'MongoNetworkError',
  'MongoNetworkTimeoutError',
  'MongoServerSelectionError',
  'MongoNotConnectedError',
  'MongoPoolClearedError',
  'MongoPoolClosedError',
  'PoolClearedOnNetworkError',
  'MongoWaitQueueTimeoutError',
  'MongoTopologyClosedError',
  'MongoServerClosedError',
  'MongoStalePrimaryError',
  'MongoOperationTimeoutError',
  'MongoClientClosedError',
  'MongoExpiredSessionError',
  // A connection ended without an answer, or the server was lost between its choice and the second try.
  'MongoUnexpectedServerResponseError',
  'MongooseServerSelectionError',
]);

/**
 * mongoose's words while it is not connected. Its errors of misuse have the same name and no code: they are faults of
 * this service, and no second try helps.
 */
const NOT_CONNECTED = / buffering timed out after |before initial connection |^Connection was force closed$/;

/** The driver wraps what a socket reports, but not what a write to a just ended connection throws. */
const BROKEN_SOCKET: ReadonlySet<unknown> = new Set([
  'EPIPE',
  'ECONNRESET',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

function isAwayByName(error: Error): boolean {
  const { name, message } = error;
  if (AWAY_NAMES.has(name) || BROKEN_SOCKET.has(Reflect.get(error, 'code'))) return true;
  return name === 'MongooseError' && NOT_CONNECTED.test(message);
}

/**
 * A MongoDB with these codes cannot serve: it is not allowed to, full, interrupted or changing its primary. Source:
 * error_codes.yml of github.com/mongodb/mongo; 8000 is Atlas's own, for a quota.
 */
const UNABLE_CODES: ReadonlySet<number> = new Set([
  // Unreachable, or no right: 6, 7; 11 user not found, 13 unauthorized, 18 authentication failed, 391.
  6, 7, 11, 13, 18, 391,
  // No time, no lock, no memory: 50 MaxTimeMSExpired, 262 ExceededTimeLimit, 290 TransactionExceededLifetimeLimit.
  24, 46, 50, 89, 112, 133, 134, 146, 202, 262, 290, 292,
  // Not durable: 64 write concern timed out, 79 unknown and 100 unsatisfiable write concern.
  64, 79, 100,
  // Another primary, or none: 63, 91, 136, 189, 211, 251, 10058, 10107, 13435, 13436.
  63, 91, 136, 189, 211, 251, 10_058, 10_107, 13_435, 13_436,
  // Interrupted, cut off or full: 11601 Interrupted, 12501 quota exceeded, 14031 OutOfDiskSpace.
  43, 237, 279, 317, 384, 8_000, 9_001, 11_600, 11_601, 11_602, 12_501, 14_031,
]);

/** A document with these codes can never be stored: it fails validation, or is too large. */
const BAD_DOCUMENT_CODES: ReadonlySet<number> = new Set([121, 10_334]);

/** The cause, or answers and errors of a bulk write. */
function innerErrorsOf(error: object): unknown[] {
  const inner = ['cause', 'errorResponse', 'err'].map((name): unknown => Reflect.get(error, name));
  return inner.filter((value) => value !== error);
}

function codesOf(error: object): number[] {
  const writeErrors: unknown = Reflect.get(error, 'writeErrors');
  const all = [error, ...(Array.isArray(writeErrors) ? (writeErrors as unknown[]) : [])];
  return all.flatMap((each) => (hasCode(each) ? [each.code] : []));
}

function hasCode(error: unknown): error is { code: number } {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'number';
}

const DEPTH_MAX = 4;

function isTrueWithin(error: unknown, isTrue: (error: object) => boolean, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > DEPTH_MAX) return false;
  return isTrue(error) || innerErrorsOf(error).some((inner) => isTrueWithin(inner, isTrue, depth + 1));
}

function isAwayBy(error: object, codes: ReadonlySet<number>): boolean {
  return (error instanceof Error && isAwayByName(error)) || codesOf(error).some((code) => codes.has(code));
}

/**
 * MongoDB is away, busy, full, not allowed to serve or changing its primary: the same call may succeed later. The
 * driver labels what may be tried again.
 */
export function isMongoAway(error: unknown): boolean {
  return (
    error instanceof Error &&
    isTrueWithin(error, (each) => {
      if (each instanceof mongoose.mongo.MongoError && each.errorLabels.length > 0) return true;
      return isAwayBy(each, UNABLE_CODES);
    })
  );
}

/** No server answers, or another one is being chosen: seconds, as a rule. */
const ELECTION_CODES: ReadonlySet<number> = new Set([
  6, 7, 63, 89, 91, 189, 10_058, 10_107, 13_435, 13_436, 9_001, 11_600, 11_602,
]);

/** No MongoDB answers, or another primary is being chosen; excludes one that may not or cannot serve. */
export function isMongoUnreachable(error: unknown): boolean {
  return error instanceof Error && isTrueWithin(error, (each) => isAwayBy(each, ELECTION_CODES));
}

/** The document itself is at fault. A closed list: any other code may be MongoDB's own fault. */
export function isBadDocument(error: unknown): boolean {
  return (
    error instanceof Error &&
    isTrueWithin(
      error,
      (each) =>
        (each instanceof Error && each.name.startsWith('BSON')) ||
        codesOf(each).some((code) => BAD_DOCUMENT_CODES.has(code)),
    )
  );
}

const UNKNOWN = 'MongoDB does not answer; check MONGODB_URI and that the server runs and accepts connections.';
const UNKNOWN_HOST = 'The name of the MongoDB host is not known here; check the host in MONGODB_URI.';
const TLS =
  'MongoDB ends the connection at once; check MONGODB_URI: tls=true reaches only a server that speaks TLS, and one that does is reached by nothing else.';
const REFUSED =
  'MongoDB refuses the user or the password; check MONGODB_URI: both of them, authSource (the database that has the user), and that @, :, /, # and ? of a password are percent-encoded.';
const UNREADABLE =
  'MONGODB_URI cannot be read; it must be mongodb://HOST:PORT/DATABASE?replicaSet=NAME, with @, :, /, # and ? of a password percent-encoded.';
/** `AuthenticationFailed`, and Atlas's code for it. */
const AUTHENTICATION_FAILED: ReadonlySet<unknown> = new Set([18, 8000]);

/** Compared by name: the driver's parser of URIs comes from another package, with classes of its own. */
const OF_URIS: ReadonlySet<string> = new Set([
  'MongoParseError',
  'MongoAPIError',
  'MongoInvalidArgumentError',
  'MongoMissingCredentialsError',
  'MongoRuntimeError',
  'URIError',
]);

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  return `${error.message} ${textOf(error.cause)}`;
}

/** The driver knew this of the servers when it gave up. */
interface Topology {
  type?: string;
  setName?: string | null;
  servers?: Map<string, { type: string }>;
}

function topologyOf(error: unknown): Topology {
  const isFinal = error instanceof mongoose.Error.MongooseServerSelectionError && 'reason' in error;
  return isFinal ? (error.reason as Topology) : {};
}

const NO_PRIMARY = 'has no primary that can be reached; check rs.status().';

/** The driver silently leaves out servers that answered with another name, or with none. */
function faultOfSet(error: unknown): string | undefined {
  const { type, servers, setName } = topologyOf(error);
  if (type !== 'ReplicaSetNoPrimary' || servers === undefined) return undefined;
  if (servers.size === 0)
    return `No server of MONGODB_URI is of a replica set that is named ${String(setName)}; check replicaSet in it against rs.status().set of the server.`;
  const hasMember = [...servers.values()].some((server) => server.type.startsWith('RS'));
  return hasMember ? `The replica set ${String(setName)} of MONGODB_URI ${NO_PRIMARY}` : undefined;
}

/** One sentence for the operator. It never shows the URI, which may have a password. */
export function mongoStartFault(error: unknown): string {
  if (error instanceof Error && OF_URIS.has(error.name)) return UNREADABLE;
  if (error instanceof mongoose.mongo.MongoServerError && AUTHENTICATION_FAILED.has(error.code)) return REFUSED;
  const text = textOf(error);
  if (/\b(ENOTFOUND|EAI_AGAIN|ENODATA)\b/.test(text)) return UNKNOWN_HOST;
  if (/ECONNRESET|EPROTO|before secure TLS|wrong version number|connection \S+ to \S+ closed/.test(text)) return TLS;
  return faultOfSet(error) ?? UNKNOWN;
}

/** The sentence of `mongoStartFault` describes a server that may come back. */
export const mayReturn = (fault: string): boolean =>
  [UNKNOWN, UNKNOWN_HOST].includes(fault) || fault.endsWith(NO_PRIMARY);

/** Explains by `hello` why a server has no transactions; undefined: it has. */
export function mongoServerFault(hello: object): string | undefined {
  const isRouter = 'msg' in hello && hello.msg === 'isdbgrid';
  return isRouter || 'setName' in hello
    ? undefined
    : 'MongoDB runs alone, and transactions need a replica set, of one member at least; start it with --replSet NAME and call rs.initiate().';
}
