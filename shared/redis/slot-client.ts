import { connect as connectTcp } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';

import { AbstractConnector, Redis } from 'ioredis';
import type { Cluster } from 'ioredis';

import { BLOCKED_MS, corkPerTick } from './connection.ts';
import type { NodeOptions, RedisClient } from './connection.ts';
import { inTime } from './time-limits.ts';

/** A row of `CLUSTER SLOTS`: from, to, then the master and its replicas. */
type SlotRange = [from: number, to: number, ...nodes: [host: string, port: number, ...more: unknown[]][]];

const DISCONNECT_MS = 2_000;
const ASK_MS = 1_000;
const ASK_AGAIN_MS = 100;

/**
 * Answers of a server that is no longer the slot's master, or whose cluster has not agreed on one. Connecting again
 * finds the master, and the command is sent there.
 */
const ELSEWHERE = /^(?:MOVED|READONLY|CLUSTERDOWN|UNBLOCKED) /;

/**
 * A connection for BullMQ's workers of the queues whose keys carry `tag`. On a cluster it is a plain connection to the
 * master of the tag's slot and follows the slot: after a fail-over it connects to the new master and sends again what
 * was under way.
 *
 * A queue's keys share one slot, so its workers need no cluster client, on which a blocked fetch may never return after
 * a fail-over (docs/decisions/0002-tenant-shards.md).
 */
export function openQueueConnection(client: RedisClient, tag: string) {
  if (client instanceof Redis) return { client, close: () => undefined };
  const following = createSlotClient(client, tag);
  // The user of the connection listens as well; it connects again by itself.
  following.on('error', () => undefined);
  return {
    client: following,
    close: () => {
      following.disconnect();
    },
  };
}

/** Asks every known server at once: one may be dead, or cut off. */
async function findMaster(cluster: Cluster, tag: string): Promise<{ host: string; port: number }> {
  const [ranges, slot] = await Promise.any(
    cluster.nodes().map(async (node) => {
      const asked = Promise.all([node.cluster('INFO'), node.cluster('SLOTS'), node.cluster('KEYSLOT', tag)]);
      const [state, found, slot] = await inTime(asked, ASK_MS);
      if (!state.includes('cluster_state:ok')) throw new Error('This server sees no whole cluster.');
      return [found satisfies SlotRange[], slot] as const;
    }),
  );
  const [host, port] = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2] ?? [];
  if (host === undefined || port === undefined) throw new Error(`No server of the cluster has the slot of ${tag}.`);
  return { host, port };
}

function createSlotClient(cluster: Cluster, tag: string): Redis {
  const options = (cluster.options.redisOptions ?? {}) as NodeOptions;

  /** ioredis makes one for each client, BullMQ's duplicates included. */
  class SlotConnector extends AbstractConnector {
    constructor() {
      super(DISCONNECT_MS);
    }

    override check(info: { role?: string }): boolean {
      return info.role === undefined || info.role === 'master';
    }

    /** ioredis tries no more once this has failed, so it goes on until told to end. */
    override async connect(): Promise<AbstractConnector['stream']> {
      this.connecting = true;
      for (;;) {
        const address = await findMaster(cluster, tag).catch(() => undefined);
        // `disconnect` may have been called meanwhile, which the type checker cannot see.
        if (!(this.connecting as boolean)) throw new Error('Connection is closed.');
        if (address !== undefined) return (this.stream = this.open(address));
        await pause(ASK_AGAIN_MS);
      }
    }

    private open(address: { host: string; port: number }): AbstractConnector['stream'] {
      const stream = options.tls === undefined ? connectTcp(address) : connectTls({ ...address, ...options.tls });
      // A blocking fetch does not notice a server that hangs, or is cut off; the cluster client does.
      const leave = ({ options: { host, port } }: Redis) => {
        if (host === address.host && port === address.port) stream.destroy();
      };
      cluster.on('-node', leave);
      stream.once('close', () => cluster.off('-node', leave));
      stream.once('error', (error: Error) => {
        this.firstError = error;
      });
      return stream;
    }
  }

  return corkPerTick(
    new Redis({
      ...options,
      lazyConnect: false,
      socketTimeout: BLOCKED_MS,
      Connector: SlotConnector,
      reconnectOnError: (error: Error) => (ELSEWHERE.test(error.message) ? 2 : false),
    }),
  );
}
