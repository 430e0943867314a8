import { Cluster } from 'ioredis';

import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { createRequestEraser } from '../requests/request-eraser.ts';
import { createOutboxSearch } from '../requests/outbox.ts';
import { defineScript } from '../scripts.ts';

/** Whose keys are meant: those of a tenant and of its API keys. */
export interface StateOwner {
  tenantId: string;
  keyIds: readonly string[];
}

/** What of a tenant is not at rest on a shard. */
export interface OpenWork {
  /** Requests that wait or run. */
  requests: number;
  /** Requests that have ended and are not booked yet, dead letters included. */
  unsettled: number;
}

/**
 * All that Redis has of one tenant, for a move to another shard. Writing needs a mark on the shard that is written
 * (move-marks.ts), so that a process which has been overtaken changes nothing.
 */
export interface TenantState {
  openWork(shard: number, tenantId: string): Promise<OpenWork>;
  /** Rejects with `Overtaken` where the mark of the target is another one. `onPage` runs between portions. Safe to repeat. */
  copy(way: { from: number; to: number }, owner: StateOwner, mark: string, onPage: () => Promise<void>): Promise<void>;
  /**
   * Takes everything of the tenant away from a shard that does not serve it; answers stay for `lingerMs`, for whoever is
   * reading one. Rejects as above. Safe to repeat.
   */
  clear(shard: number, owner: StateOwner, mark: string, lingerMs: number): Promise<void>;
}

/** The move is another process's. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken';
  constructor() {
    super('The move of the tenant is in other hands');
  }
}

const SCAN_COUNT = 1_000;
const AT_ONCE = 100;

/** Made again from MongoDB, which has the book, or empty: a tenant that is moved has nothing open and nothing pending. */
const LEFT_BEHIND: ReadonlySet<string> = new Set(['acct', 'pend', 'open']);

interface StateKey {
  /** Behind the shard's prefix. */
  name: string;
  /** A request's record, or a part of what it has left. */
  isAnswer: boolean;
  isLeftBehind: boolean;
  /** Whose it is cannot be told any more: it is copied, and not taken away. */
  isShared: boolean;
}

const key = (name: string, more: Partial<StateKey> = {}): StateKey => ({
  ...{ name, isAnswer: false, isLeftBehind: false, isShared: false },
  ...more,
});

export function createTenantState(client: RedisClient, keyspace: Keyspace): TenantState {
  const bring = defineScript(client, 'bring-key');
  const clearKeys = defineScript(client, 'clear-keys');
  const requests = createRequestEraser(client, keyspace);
  const outbox = createOutboxSearch(client, keyspace);
  const prefixOf = (shard: number) => `${keyspace.shard(shard).tag}:`;

  async function* pagesOf(shard: number): AsyncGenerator<string[]> {
    const prefix = prefixOf(shard);
    const nodes = client instanceof Cluster ? client.nodes('master') : [client];
    for (const node of nodes) {
      for await (const found of node.scanStream({ match: `${prefix}*`, count: SCAN_COUNT })) {
        // ioredis types a stream's parts as any; SCAN gives names.
        yield (found as string[]).map((name) => name.slice(prefix.length));
      }
    }
  }

  async function ownRequest(shard: number, requestId: string, tenantId: string): Promise<StateKey[]> {
    if ((await client.hget(keyspace.shard(shard).record(requestId), 'tenant')) !== tenantId) return [];
    return ['r', 's', 'a', 'e'].map((kind) => key(`${kind}:${requestId}`, { isAnswer: true }));
  }

  /** A claim outlives the record of its request where nothing is kept; its name is a hash over the tenant. */
  async function ownClaim(shard: number, name: string, tenantId: string): Promise<StateKey[]> {
    const value = (await client.get(prefixOf(shard) + name)) ?? '';
    const tenant = await client.hget(keyspace.shard(shard).record(value.split(' ')[0] ?? ''), 'tenant');
    return tenant === null || tenant === tenantId ? [key(name, { isShared: tenant === null })] : [];
  }

  async function ownOf(shard: number, names: readonly string[], { tenantId, keyIds }: StateOwner): Promise<StateKey[]> {
    const ids = new Set([tenantId, ...keyIds]);
    const found = names.map(async (name): Promise<StateKey[]> => {
      const [kind = '', second = '', ...rest] = name.split(':');
      if (kind === 'r') return ownRequest(shard, second, tenantId);
      if (kind === 'idem') return ownClaim(shard, name, tenantId);
      // The flag of the tenant is the mark of its move.
      const isOwn = name !== `blocked:${tenantId}` && [second, ...rest].some((part) => ids.has(part));
      return isOwn ? [key(name, { isLeftBehind: LEFT_BEHIND.has(kind) })] : [];
    });
    return (await Promise.all(found)).flat();
  }

  /** Some at a time; one may come twice. */
  async function* keysOf(shard: number, owner: StateOwner): AsyncGenerator<StateKey[]> {
    for await (const names of pagesOf(shard)) {
      const own = await ownOf(shard, names, owner);
      for (let from = 0; from < own.length; from += AT_ONCE) yield own.slice(from, from + AT_ONCE);
    }
  }

  async function copyOne(from: number, to: number, name: string, mark: string, tenantId: string): Promise<void> {
    const source = prefixOf(from) + name;
    const [value, expiresAt] = await Promise.all([client.dumpBuffer(source), client.pexpiretime(source)]);
    // -2: there is no such key.
    if (expiresAt === -2) return;
    const keys = [keyspace.shard(to).blocked(tenantId), prefixOf(to) + name];
    const done = await bring(keys, [mark, Math.max(0, expiresAt), value, prefixOf(from), prefixOf(to)]);
    if (done !== 1) throw new Overtaken();
  }

  async function unsettledOf(shard: number, tenantId: string): Promise<number> {
    const pending = await client.hlen(keyspace.shard(shard).pending(tenantId));
    if (pending > 0) return pending;
    // Of test keys nothing is pending.
    const isWaiting = (await outbox.find(shard, (record) => record.tenantId === tenantId)) !== undefined;
    const dead: string[] = [];
    await outbox.rewriteDeadLetters(shard, (raw) => {
      if (raw.includes(JSON.stringify(tenantId))) dead.push(raw);
      return undefined;
    });
    return dead.length + (isWaiting ? 1 : 0);
  }

  return {
    async openWork(shard, tenantId) {
      let open = 0;
      for await (const ids of requests.open(shard)) {
        const found = await requests.look(shard, ids);
        open += found.filter(
          (request) => request.tenantId === tenantId && (request.state === 'accepted' || request.state === 'running'),
        ).length;
      }
      return { requests: open, unsettled: await unsettledOf(shard, tenantId) };
    },

    async copy({ from, to }, owner, mark, onPage) {
      for await (const own of keysOf(from, owner)) {
        const moving = own.filter(({ isLeftBehind }) => !isLeftBehind);
        await Promise.all(moving.map(({ name }) => copyOne(from, to, name, mark, owner.tenantId)));
        await onPage();
      }
    },

    async clear(shard, owner, mark, lingerMs) {
      for await (const own of keysOf(shard, owner)) {
        const gone = own.filter(({ isShared }) => !isShared);
        for (const isAnswer of [false, true]) {
          const names = gone.filter((each) => each.isAnswer === isAnswer).map(({ name }) => prefixOf(shard) + name);
          if (names.length === 0) continue;
          const keys = [keyspace.shard(shard).blocked(owner.tenantId), ...names];
          if ((await clearKeys(keys, [mark, isAnswer ? lingerMs : 0])) !== 1) throw new Overtaken();
        }
      }
    },
  };
}
