import mongoose from 'mongoose';

const UNKNOWN = 'MongoDB does not answer; check MONGODB_URI and that the server runs and accepts connections.';
const TLS =
  'MongoDB ends the connection at once; check MONGODB_URI: tls=true reaches only a server that speaks TLS, and one that does is reached by nothing else.';
const REFUSED =
  'MongoDB refuses the user or the password; check MONGODB_URI: both of them, authSource (the database that has the user), and that @, :, /, # and ? of a password are percent-encoded.';
const UNREADABLE =
  'MONGODB_URI cannot be read; it must be mongodb://HOST:PORT/DATABASE?replicaSet=NAME, with @, :, /, # and ? of a password percent-encoded.';
/** `AuthenticationFailed`, and the code that Atlas has for it. */
const AUTHENTICATION_FAILED: ReadonlySet<unknown> = new Set([18, 8000]);

/** By name: the driver takes the parser of URIs from another package, with classes of its own. */
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

/** What the driver knew of the servers when it gave up. */
interface Topology {
  type?: string;
  setName?: string | null;
  servers?: Map<string, { type: string }>;
}

function topologyOf(error: unknown): Topology {
  const isFinal = error instanceof mongoose.Error.MongooseServerSelectionError && 'reason' in error;
  return isFinal ? (error.reason as Topology) : {};
}

/** Servers that answered with another name, or with none, are left out by the driver without a word. */
function faultOfSet(error: unknown): string | undefined {
  const { type, servers, setName } = topologyOf(error);
  if (type !== 'ReplicaSetNoPrimary' || servers === undefined) return undefined;
  if (servers.size === 0)
    return `No server of MONGODB_URI is of a replica set that is named ${String(setName)}; check replicaSet in it against rs.status().set of the server.`;
  const hasMember = [...servers.values()].some((server) => server.type.startsWith('RS'));
  return hasMember
    ? `The replica set ${String(setName)} of MONGODB_URI has no primary that can be reached; check rs.status().`
    : undefined;
}

/** One sentence for the operator whose MongoDB could not be reached. No sentence shows the URI: it may have a password. */
export function mongoStartFault(error: unknown): string {
  if (error instanceof Error && OF_URIS.has(error.name)) return UNREADABLE;
  if (error instanceof mongoose.mongo.MongoServerError && AUTHENTICATION_FAILED.has(error.code)) return REFUSED;
  const text = textOf(error);
  if (/\b(ENOTFOUND|EAI_AGAIN|ENODATA)\b/.test(text))
    return 'The name of the MongoDB host is not known here; check the host in MONGODB_URI.';
  if (/ECONNRESET|EPROTO|before secure TLS|wrong version number|connection \S+ to \S+ closed/.test(text)) return TLS;
  return faultOfSet(error) ?? UNKNOWN;
}

/** What `hello` says of a server that has no transactions; undefined: it has. */
export function mongoServerFault(hello: object): string | undefined {
  const isRouter = 'msg' in hello && hello.msg === 'isdbgrid';
  return isRouter || 'setName' in hello
    ? undefined
    : 'MongoDB runs alone, and transactions need a replica set, of one member at least; start it with --replSet NAME and call rs.initiate().';
}
