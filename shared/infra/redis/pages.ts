import { Cluster } from 'ioredis';

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

/** The names of all keys that begin with `prefix`, a page at a time; a page may be empty, and a name may come twice. */
export async function* keyPages(client: RedisClient, prefix: string): AsyncGenerator<string[]> {
  const nodes = client instanceof Cluster ? client.nodes('master') : [client];
  for (const node of nodes) {
    for await (const found of node.scanStream({ match: `${prefix}*`, count: SCAN_COUNT })) {
      // ioredis types a stream's parts as any; SCAN gives names.
      yield found as string[];
    }
  }
}
