import { connect as connectTcp } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';

import { AbstractConnector, Redis } from 'ioredis';
import type { Cluster } from 'ioredis';

import { BLOCKED_MS, corkPerTick } from './connection.ts';
import type { NodeOptions, RedisClient } from './connection.ts';
import { inTime } from './time-limits.ts';

/** One row of `CLUSTER SLOTS`: from, to, then the master and its replicas. */
type SlotRange = [from: number, to: number, ...nodes: [host: string, port: number, ...more: unknown[]][]];

const DISCONNECT_MS = 2_000;
const ASK_MS = 1_000;
const ASK_AGAIN_MS = 100;

/**
 * What a server answers that is not the master of the slot any more, or of a cluster that has not agreed on a new one.
 * Connecting again finds the new master, and the command is sent there.
 */
const ELSEWHERE = /^(?:MOVED|READONLY|CLUSTERDOWN|UNBLOCKED) /;

/**
 * A connection for BullMQ's workers of the queues whose keys carry `tag`. On a cluster it is a plain connection to
 * whichever master has the tag's slot, and it follows the slot: after a fail-over it connects to the new master and
 * sends again what was under way.
 *
 * All keys of a queue are in one slot, so its workers need nothing of a cluster client, and over one they stand still
 * after a fail-over: a blocked fetch may never return (docs/decisions/0002-tenant-shards.md).
 */
export function openQueueConnection(client: RedisClient, tag: string) {
  if (client instanceof Redis) return { client, close: () => undefined };
  const following = createSlotClient(client, tag);
  // Whoever uses it listens as well; it connects again by itself.
  following.on('error', () => undefined);
  return {
    client: following,
    close: () => {
      following.disconnect();
    },
  };
}

/** Asks every server that is known at once: one of them may be dead, or cut off. */
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

  /** ioredis makes one for each client, those that BullMQ duplicates included. */
  class SlotConnector extends AbstractConnector {
    constructor() {
      super(DISCONNECT_MS);
    }

    override check(info: { role?: string }): boolean {
      return info.role === undefined || info.role === 'master';
    }

    /** ioredis tries no more once this has failed, so it goes on until it is told to end. */
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
      // A fetch that blocks hears nothing of a server that hangs, or is cut off; the cluster client does.
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
