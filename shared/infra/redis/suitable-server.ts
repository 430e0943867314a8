import { Redis } from 'ioredis';
import type { Cluster } from 'ioredis';

import type { Keyspace } from './keyspace.ts';
import { lackOfRights } from './user-rights.ts';

/** The scripts say by flags what may run in a full Redis, which older servers do not read. */
const MAJOR_VERSION_MIN = 7;

/** What is wrong with a server, by its `INFO`; undefined: nothing. Source: docs/spec/contract.md section 1. */
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

/** Throws where a server is not one that this service can run on. Returns what the operator should know, each once. */
export async function assertSuitable(client: Redis | Cluster, keyspace: Keyspace): Promise<string[]> {
  const servers = client instanceof Redis ? [client] : client.nodes('master');
  const found = await Promise.all(
    servers.map(async (server) => {
      const fault = await lackOfRights(server, keyspace, !(client instanceof Redis));
      if (fault !== undefined) throw new Error(fault);
      return (await Promise.all(SECTIONS.map((section) => server.info(section)))).join('\n');
    }),
  );
  const fault = found
    .map((info) => (isSingle(client) ? faultOfSingle(info) : undefined) ?? redisServerFault(info))
    .find((each) => each !== undefined);
  if (fault !== undefined) throw new Error(fault);
  if (isSingle(client)) await selectOwn(client);
  return [...new Set(found.flatMap(adviceOnServer))];
}
