import { setTimeout as pause } from 'node:timers/promises';

import { mongo } from 'mongoose';

const CALL_TIMEOUT_MS = 2_000;
const POLL_MS = 100;

/** MongoDB's error codes for a member without a configuration, and for one that its configuration does not name. */
const NOT_YET_INITIALIZED = 94;
const INVALID_REPLICA_SET_CONFIG = 93;

interface ReplicaSetConfig {
  _id: string;
  version: number;
  members: { _id: number; host: string }[];
}

/** The command that makes a node with this configuration the primary of its own set, or undefined if none is needed. */
export function planReplicaSet(
  name: string,
  host: string,
  current: ReplicaSetConfig | undefined,
): Record<string, unknown> | undefined {
  const members = [{ _id: 0, host }];
  if (current === undefined) return { replSetInitiate: { _id: name, members } };
  if (current.members.length === 1 && current.members[0]?.host === host) return undefined;
  // From an earlier start, the node is configured with another port, so its configuration no longer includes it.
  return { replSetReconfig: { ...current, version: current.version + 1, members }, force: true };
}

/** Makes the node at `host` a replica set of one, which transactions need, and waits until it accepts writes. */
export async function initiateReplicaSet(host: string, name: string, timeoutMs: number): Promise<void> {
  await withAdmin(`mongodb://${host}/?directConnection=true`, async (admin) => {
    const plan = planReplicaSet(name, host, await readConfig(admin));
    if (plan !== undefined) await admin.command(plan);
    const deadline = performance.now() + timeoutMs;
    while ((await admin.command({ hello: 1 }))['isWritablePrimary'] !== true) {
      if (performance.now() > deadline) throw new Error('MongoDB did not become the primary of its replica set.');
      await pause(POLL_MS);
    }
  });
}

/** Resolves when the server answers; rejects within about 2 s otherwise. */
export async function pingMongo(url: string): Promise<void> {
  await withAdmin(url, (admin) => admin.command({ ping: 1 }));
}

async function withAdmin<T>(url: string, use: (admin: mongo.Db) => Promise<T>): Promise<T> {
  const client = new mongo.MongoClient(url, {
    serverSelectionTimeoutMS: CALL_TIMEOUT_MS,
    connectTimeoutMS: CALL_TIMEOUT_MS,
    socketTimeoutMS: CALL_TIMEOUT_MS,
  });
  try {
    return await use(client.db('admin'));
  } finally {
    await client.close();
  }
}

async function readConfig(admin: mongo.Db): Promise<ReplicaSetConfig | undefined> {
  try {
    const answer = await admin.command({ replSetGetConfig: 1 });
    // The shape documented by MongoDB for this command.
    return answer['config'] as ReplicaSetConfig;
  } catch (error) {
    const code = error instanceof mongo.MongoServerError ? error.code : undefined;
    if (code === NOT_YET_INITIALIZED || code === INVALID_REPLICA_SET_CONFIG) return undefined;
    throw error;
  }
}
