import { decodeEntry } from '../../../shared/contracts/events.ts';
import type { StreamEntry } from '../../../shared/contracts/events.ts';
import { QUEUE_NAMES } from '../../../shared/contracts/jobs.ts';
import type { QueueName } from '../../../shared/contracts/jobs.ts';
import { connectRedis, createRedis } from '../../../shared/infra/redis/connection.ts';
import type { RedisClient } from '../../../shared/infra/redis/connection.ts';
import { createKeyspace } from '../../../shared/infra/redis/keyspace.ts';
import type { ShardKeys } from '../../../shared/infra/redis/keyspace.ts';
import { textOfEntries } from './text-of-entries.ts';
import type { AccountState, RequestState } from '../checker/evidence.ts';

/** The experiments run with one shard. */
const SHARD = 0;
const SCAN_COUNT = 1_000;

interface RedisState {
  /** What must be empty at rest. */
  queues: Record<string, number>;
  records: RequestState[];
  accounts: Pick<AccountState, 'tenantId' | 'bookMicro' | 'leftovers'>[];
}

export interface RedisInspector {
  client: RedisClient;
  keys: ShardKeys;
  queues(): Promise<Record<string, number>>;
  account(tenantId: string): Promise<RedisState['accounts'][number]>;
  records(): Promise<RequestState[]>;
  close(): void;
}

/** Looks into the experiment's Redis itself, for checks that do not rely on the service. */
export async function openRedisInspector(url: string): Promise<RedisInspector> {
  const client = createRedis(url, 'worker');
  // Redis is killed under it by some experiments; it connects again.
  client.on('error', () => undefined);
  await connectRedis(client);
  const keys = createKeyspace().shard(SHARD);
  async function queueOf(queue: QueueName): Promise<[string, number][]> {
    const list = (name: string) => `${keys.tag}:${queue}:${name}`;
    const lengths = await Promise.all([
      ...['wait', 'active', 'paused'].map((name) => client.llen(list(name))),
      ...['delayed', 'prioritized'].map((name) => client.zcard(list(name))),
    ]);
    const names = ['wait', 'active', 'paused', 'delayed', 'prioritized'];
    return names.map((name, at) => [`${queue} ${name}`, lengths[at] ?? 0]);
  }
  return {
    client,
    keys,
    async queues() {
      const [lanes, inflight, outbox, deadLetters] = await Promise.all([
        Promise.all(QUEUE_NAMES.map(queueOf)),
        client.zcard(keys.inflight),
        client.xlen(keys.outbox),
        client.xlen(keys.deadLetters),
      ]);
      return { ...Object.fromEntries(lanes.flat()), inflight, outbox, 'dead letters': deadLetters };
    },
    async account(tenantId) {
      const fields = await client.hgetall(keys.account(tenantId));
      // `held` and `pend` are credits, `ht:` and `pt:` the tokens of a month.
      const numbers = Object.entries(fields).filter(([name]) => /^(held|pend|ht:.*|pt:.*)$/.test(name));
      const leftovers = Object.fromEntries(numbers.map(([name, value]) => [name, Number(value)]));
      const pending = await client.hlen(keys.pending(tenantId));
      const open = await client.zcard(keys.open(tenantId));
      return {
        tenantId,
        bookMicro: Number(fields['book'] ?? 0),
        leftovers: { ...leftovers, 'pending charges': pending, 'open requests': open },
      };
    },
    async records() {
      const prefix = keys.record('');
      const found: RequestState[] = [];
      let cursor = '0';
      do {
        const [next, names] = await client.scan(
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
      return found;
    },
    close: () => {
      client.disconnect();
    },
  };
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
