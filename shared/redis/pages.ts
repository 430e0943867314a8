import { Cluster } from 'ioredis';
import type { Redis } from 'ioredis';

import { mastersBySlot, nameOf, slotOf } from './cluster-slots.ts';
import type { RedisClient } from './connection.ts';

/** An entry of a stream, as ioredis has it: names and values in turn. */
export type StreamRow = [id: string, fields: string[]];

/** Entries in one answer. */
const PAGE = 500;

/** The entries of a stream up to `to`, a page at a time; what is added while they are read comes, too. */
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

/** About how many keys Redis looks at for one page. */
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
 * First those of the master that has the slot, then what may have gone on its way to another one meanwhile. That one may be
 * away unless the slot is on its way: then the master answers `ASK` to whoever asks for a key that it does not have.
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

/**
 * The names of all keys that begin with `prefix`, a page at a time; a page may be empty, and a name may come twice. The prefix
 * has a hash tag. Rejects while a server is away that may have some of them.
 */
export function keyPages(client: RedisClient, prefix: string): AsyncGenerator<string[]> {
  return client instanceof Cluster ? clusterPages(client, prefix) : pagesOf(client, prefix);
}
