import { Cluster } from 'ioredis';
import type { Redis } from 'ioredis';

import { mastersBySlot, nameOf, slotOf } from './cluster-slots.ts';
import type { RedisClient } from './connection.ts';

/** Has names and values in turn, from ioredis. */
export type StreamRow = [id: string, fields: string[]];

const PAGE = 500;

/** Reads up to `to` a page at a time; entries added meanwhile are included. */
export async function* streamPages(
  client: RedisClient,
  stream: string,
  { from = '-', to = '+' }: { from?: string | undefined; to?: string } = {},
): AsyncGenerator<StreamRow[]> {
  for (let next = from; ;) {
    const rows: StreamRow[] = await client.xrange(stream, next, to, 'COUNT', PAGE);
    yield rows;
    const last = rows.at(-1)?.[0];
    if (rows.length < PAGE || last === undefined) return;
    next = `(${last}`;
  }
}

/** Redis looks at about this many keys for a page. */
const SCAN_COUNT = 1_000;
/** Follows a prefix in the name of a key that nobody writes. */
const NO_KEY = ':none:';

async function* pagesOf(node: Redis, prefix: string): AsyncGenerator<string[]> {
  for await (const found of node.scanStream({ match: `${prefix}*`, count: SCAN_COUNT })) {
    // ioredis types a stream's parts as any; SCAN gives names.
    yield found as string[];
  }
}

/**
 * Reads the master of the slot first, then keys that have gone to another one meanwhile. That one may be away unless
 * the slot is on its way: then the master answers `ASK` to a request for a key that it lacks.
 */
async function* clusterPages(cluster: Cluster, prefix: string): AsyncGenerator<string[]> {
  const masters = cluster.nodes('master');
  const name = mastersBySlot(cluster)[slotOf(prefix)];
  const owner = masters.find((node) => nameOf(node) === name);
  if (owner === undefined) throw new Error('The master that has these keys is away');
  yield* pagesOf(owner, prefix);
  for (const node of masters) {
    if (node === owner) continue;
    try {
      yield* pagesOf(node, prefix);
    } catch {
      await owner.exists(`${prefix}${NO_KEY}`);
    }
  }
}

/** Pages may be empty, names repeat. The prefix has a hash tag. Rejects while a server with such keys is away. */
export function keyPages(client: RedisClient, prefix: string): AsyncGenerator<string[]> {
  return client instanceof Cluster ? clusterPages(client, prefix) : pagesOf(client, prefix);
}
