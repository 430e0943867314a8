import { decodeEntry } from '../../../shared/contracts/events.ts';
import type { StreamEntry } from '../../../shared/contracts/events.ts';
import { QUEUE_NAMES } from '../../../shared/contracts/jobs.ts';
import type { QueueName } from '../../../shared/contracts/jobs.ts';
import { connectRedis, createRedis } from '../../../shared/redis/connection.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import type { ShardKeys } from '../../../shared/redis/keyspace.ts';
import { textOfEntries } from './text-of-entries.ts';
import type { AccountState, RequestState } from '../checker/evidence.ts';

const SCAN_COUNT = 1_000;

interface RedisState {
  /** What must be empty at rest. */
  queues: Record<string, number>;
  records: RequestState[];
  accounts: Pick<AccountState, 'tenantId' | 'ledgerMicro' | 'leftovers'>[];
}

export interface RedisInspector {
  client: RedisClient;
  /** Of the first shard: most experiments run with one. */
  keys: ShardKeys;
  queues(): Promise<Record<string, number>>;
  account(tenantId: string): Promise<RedisState['accounts'][number]>;
  records(): Promise<RequestState[]>;
  close(): void;
}

/** Looks into the experiment's Redis itself, for checks that do not rely on the service. */
export async function openRedisInspector(url: string, shards: number): Promise<RedisInspector> {
  const client = createRedis(url, 'worker');
  // Redis is killed under it by some experiments; it connects again.
  client.on('error', () => undefined);
  await connectRedis(client);
  const all = Array.from({ length: shards }, (_, shard) => createKeyspace().shard(shard));
  const [keys = createKeyspace().shard(0)] = all;
  async function queueOf({ tag }: ShardKeys, queue: QueueName): Promise<[string, number][]> {
    const list = (name: string) => `${tag}:${queue}:${name}`;
    const lengths = await Promise.all([
      ...['wait', 'active', 'paused'].map((name) => client.llen(list(name))),
      ...['delayed', 'prioritized'].map((name) => client.zcard(list(name))),
    ]);
    const names = ['wait', 'active', 'paused', 'delayed', 'prioritized'];
    return names.map((name, at) => [`${queue} ${name}`, lengths[at] ?? 0]);
  }
  async function countsOf(shard: ShardKeys): Promise<[string, number][]> {
    const [queues, inflight, outbox, deadLetters, notices] = await Promise.all([
      Promise.all(QUEUE_NAMES.map((queue) => queueOf(shard, queue))),
      client.zcard(shard.inflight),
      client.xlen(shard.outbox),
      client.xlen(shard.deadLetters),
      client.xlen(shard.notices),
    ]);
    const streams: [string, number][] = [
      ['outbox', outbox],
      ['dead letters', deadLetters],
      ['notices', notices],
    ];
    return [...queues.flat(), ['inflight', inflight], ...streams];
  }
  async function accountIn(shard: ShardKeys, tenantId: string) {
    const fields = await client.hgetall(shard.account(tenantId));
    // `held` and `pending` are credits, `heldTokens:` and `pendingTokens:` the tokens of a month.
    const numbers = Object.entries(fields).filter(([name]) =>
      /^(held|pending|heldTokens:.*|pendingTokens:.*)$/.test(name),
    );
    const leftovers = Object.fromEntries(numbers.map(([name, value]) => [name, Number(value)]));
    const pending = await client.hlen(shard.pending(tenantId));
    const open = await client.zcard(shard.open(tenantId));
    return {
      book: Number(fields['ledgerBalance'] ?? 0),
      leftovers: { ...leftovers, 'pending charges': pending, 'open requests': open },
    };
  }
  return {
    client,
    keys,
    async queues() {
      const sums: Record<string, number> = {};
      for (const [name, count] of (await Promise.all(all.map(countsOf))).flat()) sums[name] = (sums[name] ?? 0) + count;
      return sums;
    },
    async account(tenantId) {
      // A tenant is on one shard; the others know nothing of it.
      const found = await Promise.all(all.map((shard) => accountIn(shard, tenantId)));
      const leftovers: Record<string, number> = {};
      for (const [name, amount] of found.flatMap((each) => Object.entries(each.leftovers)))
        leftovers[name] = (leftovers[name] ?? 0) + amount;
      return { tenantId, ledgerMicro: found.reduce((sum, { book }) => sum + book, 0), leftovers };
    },
    async records() {
      const found = await Promise.all(all.map((shard) => recordsOf(client, shard)));
      return found.flat();
    },
    close: () => {
      client.disconnect();
    },
  };
}

async function recordsOf(client: RedisClient, keys: ShardKeys): Promise<RequestState[]> {
  const prefix = keys.record('');
  const found: RequestState[] = [];
  // A cluster client would ask any of its servers.
  for (const server of 'nodes' in client ? client.nodes('master') : [client]) {
    let cursor = '0';
    do {
      const [next, names] = await server.scan(
        cursor,
        'MATCH',
        `${prefix.replace(/[[\]?*]/g, '\\$&')}*`,
        'COUNT',
        SCAN_COUNT,
      );
      cursor = next;
      const ids = names.map((name) => name.slice(prefix.length));
      found.push(...(await Promise.all(ids.map((id) => recordOf(client, keys, id)))));
    } while (cursor !== '0');
  }
  return found;
}

async function recordOf(client: RedisClient, keys: ShardKeys, requestId: string): Promise<RequestState> {
  const [[state, tenantId], entries, whole] = await Promise.all([
    client.hmget(keys.record(requestId), 'state', 'tenant'),
    client.xrange(keys.stream(requestId), '-', '+'),
    client.get(keys.answer(requestId)),
  ]);
  const decoded: StreamEntry[] = entries.map(([, [, payload]]) => decodeEntry(0, payload ?? ''));
  if (whole !== null) decoded.push(decodeEntry(0, whole.slice(whole.indexOf('\n') + 1)));
  const terminals = decoded.flatMap(({ terminal }) => terminal ?? []);
  return {
    requestId,
    tenantId: tenantId ?? '',
    state: state ?? '',
    terminals: terminals.length,
    increments: decoded.reduce((sum, { deltas }) => sum + deltas.length, 0),
    text: textOfEntries(decoded),
    finishReason: terminals[0]?.finishReason,
  };
}
