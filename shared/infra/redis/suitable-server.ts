import { Redis } from 'ioredis';
import type { Cluster } from 'ioredis';

import { withTimeLimit } from '../../lifecycle/clock.ts';
import { nameOf } from './cluster-slots.ts';
import type { Keyspace } from './keyspace.ts';
import { lackOfRights } from './user-rights.ts';

/** The scripts say by flags what may run in a full Redis, which older servers do not read. */
const MAJOR_VERSION_MIN = 7;

/** What is wrong with a server, by its `INFO`; undefined: nothing. Source: docs/spec.md#stores. */
export function redisServerFault(info: string): string | undefined {
  const version = /redis_version:(\S+)/.exec(info)?.[1];
  if (version !== undefined && Number.parseInt(version, 10) < MAJOR_VERSION_MIN)
    return `Redis is version ${version}; it must be ${MAJOR_VERSION_MIN}.0 or newer.`;
  const policy = /maxmemory_policy:(\S+)/.exec(info)?.[1];
  if (policy === undefined || policy === 'noeviction') return undefined;
  // A server that evicts keys would lose holds and streams.
  return `Redis has maxmemory-policy ${policy}, which may drop running requests; set it to noeviction (CONFIG SET maxmemory-policy noeviction).`;
}

/**
 * What an operator should know of a server that can be used. A master that is cut off from its replicas goes on taking
 * requests until it is replaced, and then all of them are lost: `min_slaves_good_slaves` is there only where
 * `min-replicas-to-write` is set.
 */
export function adviceOnServer(info: string): string[] {
  const replicas = Number(/connected_slaves:(\d+)/.exec(info)?.[1] ?? 0);
  const advice = [];
  if (info.includes('aof_enabled:0'))
    advice.push(
      'Redis keeps no append-only file: a Redis that is started again has lost what ran and what was not booked. Set appendonly yes.',
    );
  if (replicas > 0 && !info.includes('min_slaves_good_slaves:'))
    advice.push(
      'Redis has replicas and takes writes that none of them has: a master that is cut off loses what it accepts until it ' +
        'is replaced. With two replicas or more, set min-replicas-to-write 1 and min-replicas-max-lag 10.',
    );
  return advice;
}

function adviceOnSilent(name: string): string {
  return `The Redis master ${name} does not answer and could not be judged; its tenants wait until it is back or replaced.`;
}

/** A master that hangs, or whose machine is gone, refuses nothing. */
const ANSWER_MS = 3_000;
const SECTIONS = ['server', 'memory', 'replication', 'persistence', 'cluster'];

/**
 * Why a server cannot be the only one that a client knows, judged by what `INFO` says; undefined: it can. Such a client follows
 * neither a redirection to other nodes nor a fail-over.
 */
export function faultOfSingle(info: string): string | undefined {
  if (info.includes('cluster_enabled:1'))
    return 'Redis is a node of a cluster; write REDIS_URL as redis+cluster://HOST:PORT (rediss+cluster:// over TLS).';
  const master = /role:slave[^]*?master_host:(\S+)\s+master_port:(\d+)/.exec(info);
  return master === null
    ? undefined
    : `Redis is a replica, which takes no writes; name its master in REDIS_URL (${master[1]}:${master[2]}, as the replica knows it).`;
}

/** The client goes on in database 0 where the server does not have the one of its address. */
async function selectOwn(client: Redis): Promise<void> {
  const { db = 0 } = client.options;
  if (db === 0) return;
  await client.select(db).catch((cause: unknown) => {
    if (!(cause instanceof Error && /out of range|invalid DB index/.test(cause.message))) throw cause;
    throw new Error(
      `Redis does not open database ${db}; name one in REDIS_URL that the server has (CONFIG GET databases), or none.`,
      { cause },
    );
  });
}

function isSingle(client: Redis | Cluster): client is Redis {
  return client instanceof Redis && (client.options.sentinels ?? null) === null;
}

/** What a server says of itself. Throws where its user may not do what this service does. */
async function infoOf(server: Redis, keyspace: Keyspace, isCluster: boolean): Promise<string> {
  const fault = await lackOfRights(server, keyspace, isCluster);
  if (fault !== undefined) throw new Error(fault);
  return (await Promise.all(SECTIONS.map((section) => server.info(section)))).join('\n');
}

/**
 * What the masters of a cluster say that answer, one at least, and who does not: the tenants of the others go on, so a process
 * starts without it.
 */
async function infosOf(cluster: Cluster, keyspace: Keyspace): Promise<{ infos: string[]; silent: string[] }> {
  const silent: { name: string; error: unknown }[] = [];
  async function ask(server: Redis): Promise<string[]> {
    try {
      await withTimeLimit(server.ping(), ANSWER_MS, 'Redis does not answer');
    } catch (error) {
      // A refusal is an answer, and `infoOf` says what it is about.
      if (!(error instanceof Error && error.name === 'ReplyError')) {
        silent.push({ name: nameOf(server), error });
        return [];
      }
    }
    return [await infoOf(server, keyspace, true)];
  }
  const infos = (await Promise.all(cluster.nodes('master').map(ask))).flat();
  if (infos.length === 0) throw new Error('No master of the Redis Cluster answers.', { cause: silent[0]?.error });
  return { infos, silent: silent.map(({ name }) => name) };
}

/** Throws where a server is not one that this service can run on. Returns what the operator should know, each once. */
export async function assertSuitable(client: Redis | Cluster, keyspace: Keyspace): Promise<string[]> {
  const { infos, silent } =
    client instanceof Redis
      ? { infos: [await infoOf(client, keyspace, false)], silent: [] }
      : await infosOf(client, keyspace);
  const fault = infos
    .map((info) => (isSingle(client) ? faultOfSingle(info) : undefined) ?? redisServerFault(info))
    .find((each) => each !== undefined);
  if (fault !== undefined) throw new Error(fault);
  if (isSingle(client)) await selectOwn(client);
  return [...new Set([...infos.flatMap(adviceOnServer), ...silent.map(adviceOnSilent)])];
}
