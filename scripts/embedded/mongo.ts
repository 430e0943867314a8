import { mkdir, readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

import { initiateReplicaSet, pingMongo } from './initiate-replica-set.ts';
import { findProgram } from './find-program.ts';
import type { Environment } from './find-program.ts';
import { chooseMongo } from './choose-mongo.ts';
import type { MongoChoice, MongoKind } from './choose-mongo.ts';
import { downloadMongod } from './mongod-binary.ts';
import { onFreePort } from './ports.ts';
import type { Log } from './run-step.ts';
import { prepareVenv } from './python-venv.ts';
import { startServer } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';

const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;
const REPLICA_SET = 'parley';
const DATABASE = 'parley';

/** docs/spec.md#stores. */
const SECANTUS = {
  requirement: 'SecantusDB==0.7.0b3',
  hashes: join(import.meta.dirname, 'secantus-requirements.txt'),
  name: 'SecantusDB',
  program: 'secantusd-py',
  subject: 'MongoDB',
  folder: 'secantus-venv',
  takes: '20 seconds',
};
const SECANTUS_SERVER = join(import.meta.dirname, 'secantus-server.py');

export interface MongoOptions {
  /** Holds the database; the same folder finds the same data. */
  dataDir: string;
  /** Holds downloads and installations; several data folders may share it. Default: `<dataDir>/cache`. */
  cacheDir?: string;
  /** Default: a free one. */
  port?: number;
  /** `fast`: the Rust build of SecantusDB, if installed (benchmarks, tests), before everything else. */
  prefer?: 'fast' | 'default';
  log: Log;
  /** Default: the variables of this process. */
  env?: Environment;
  /** Aborts a start that is under way. */
  signal?: AbortSignal;
}

export interface EmbeddedMongo extends Pick<ServerProcess, 'pid' | 'exited' | 'stop' | 'kill'> {
  url: string;
  kind: MongoKind;
  /** What runs and where, for the log. */
  describe: string;
}

/** Each data format has its own folder, because the servers cannot read each other's data. */
const DATA_FOLDERS: Record<MongoKind, string> = {
  mongod: 'mongod',
  'mongodb-memory-server': 'mongod',
  'secantus-py': 'secantus-py',
  'secantus-rs': 'secantus-rs',
};

/**
 * Starts a MongoDB server or its stand-in, in the order of docs/spec.md#stores. Rejects with an error of
 * one sentence.
 */
export async function startMongo(options: MongoOptions): Promise<EmbeddedMongo> {
  const { env, log, signal } = options;
  const base = resolve(options.dataDir);
  const cacheDir = resolve(options.cacheDir ?? join(base, 'cache'));
  const step = { cacheDir, log, env, signal };
  const choice = await chooseMongo({
    log,
    preferFast: options.prefer === 'fast',
    hasData: (kind) => hasFiles(join(base, DATA_FOLDERS[kind])),
    finders: {
      'secantus-rs': findFastBuild(env),
      mongod: () => findOnPath('mongod', env),
      'mongodb-memory-server': async () => {
        const found = await downloadMongod(step);
        return 'path' in found ? { command: found.path, args: [] } : found;
      },
      'secantus-py': () =>
        prepareVenv(SECANTUS, step).then(
          ({ command }) => ({ command, args: [SECANTUS_SERVER] }),
          (error: unknown) => reasonFrom(error, signal),
        ),
    },
  });
  const dataDir = join(base, DATA_FOLDERS[choice.kind]);
  await mkdir(join(dataDir, 'db'), { recursive: true });
  const [port, server] = await onFreePort(options.port, (candidate) => launch(choice, candidate, dataDir, options));
  const address = `127.0.0.1:${port}`;
  const describe = `${choice.kind} (${choice.command}) at ${address}, data in ${dataDir}`;
  log(`MongoDB: ${describe}`);
  return { ...server, kind: choice.kind, url: urlOf(address), describe };
}

/**
 * `directConnection`: there is only one node, so nothing needs to be discovered. Transactions still work: `mongod` is a
 * replica set, and SecantusDB claims to be one.
 */
const urlOf = (address: string) => `mongodb://${address}/${DATABASE}?directConnection=true`;

async function launch(choice: MongoChoice, port: number, dataDir: string, options: MongoOptions) {
  const isMongod = DATA_FOLDERS[choice.kind] === 'mongod';
  const address = `127.0.0.1:${port}`;
  return startServer({
    name: `MongoDB (${choice.kind})`,
    command: choice.command,
    args: [...choice.args, ...serverArguments(choice.kind, port, join(dataDir, 'db'))],
    // SecantusDB reads a secantusd.toml from the folder in which it is started.
    cwd: dataDir,
    env: options.env,
    lockFile: join(dataDir, 'server.lock'),
    ready: async () => {
      await pingMongo(urlOf(address));
      if (isMongod) await initiateReplicaSet(address, REPLICA_SET, READY_TIMEOUT_MS);
    },
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopTimeoutMs: STOP_TIMEOUT_MS,
    signal: options.signal,
  });
}

function serverArguments(kind: MongoKind, port: number, dbPath: string): string[] {
  if (kind === 'mongod' || kind === 'mongodb-memory-server') {
    return [...['--port', String(port), '--bind_ip', '127.0.0.1'], '--dbpath', dbPath, '--replSet', REPLICA_SET];
  }
  const common = ['--host', '127.0.0.1', '--port', String(port), '--storage-path', dbPath];
  // Without this flag, the Rust build loses acknowledged writes on kill -9.
  if (kind === 'secantus-rs') return [...common, '--sync-on-commit'];
  // In the Python build, a thread that has to evict pages holds the lock that open transactions need to end, and the
  // server hangs forever. It evicts by cache size, 1 GB by default; a large cache, filled only as needed, prevents
  // that.
  return [...common, '--cache-size', '8G'];
}

async function findOnPath(name: string, env: Environment | undefined) {
  const command = await findProgram(name, env);
  return command === undefined ? { reason: `${name} is not on the PATH` } : { command, args: [] };
}

/** `cargo install` puts the program into a folder that is not always on the PATH. */
function findFastBuild(env: Environment | undefined) {
  return async () => {
    const onPath = await findOnPath('secantusd-rs', env);
    if ('command' in onPath) return onPath;
    const home = env === undefined ? homedir() : env['HOME'];
    const command = await findProgram(join(home ?? '/nonexistent', '.cargo', 'bin', 'secantusd-rs'), env);
    return command === undefined ? { reason: 'secantusd-rs is not installed' } : { command, args: [] };
  };
}

async function hasFiles(folder: string): Promise<boolean> {
  return (await readdir(join(folder, 'db')).catch(() => [])).length > 0;
}

function reasonFrom(error: unknown, signal: AbortSignal | undefined): { reason: string } {
  signal?.throwIfAborted();
  return { reason: error instanceof Error ? error.message : String(error) };
}
