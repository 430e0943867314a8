import { parseNotice } from '../contracts/finished-notice.ts';
import { createOutboxSearch } from './outbox.ts';
import { createRequestEraser } from './request-eraser.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { keyPages, streamPages } from '../redis/pages.ts';
import { defineScript } from '../redis/scripts.ts';
import { inTime } from '../redis/time-limits.ts';

/** Names a tenant and its API keys. */
interface StateOwner {
  tenantId: string;
  keyIds: readonly string[];
}

const AT_ONCE = 100;

/** Empty but for unremoved leftovers: a moved tenant has nothing open and nothing pending. */
const LEFT_BEHIND: ReadonlySet<string> = new Set(['pend', 'open']);

/** Found by the records of their requests. */
const BESIDE_RECORDS: ReadonlySet<string> = new Set(['s', 'a', 'b', 'e']);

interface StateKey {
  /** Without the shard's prefix. */
  name: string;
  /** A request's record, or a part of what it has left. */
  isAnswer: boolean;
  isLeftBehind: boolean;
}

const key = (name: string, more: Partial<StateKey> = {}): StateKey => ({
  name,
  isAnswer: false,
  isLeftBehind: false,
  ...more,
});

/** Splits names that tell their owner from those of which Redis has to be asked. */
function sortNames(names: readonly string[], { tenantId, keyIds }: StateOwner) {
  const ids = new Set([tenantId, ...keyIds]);
  const [requestIds, claims, own]: [string[], string[], StateKey[]] = [[], [], []];
  for (const name of names) {
    const kind = name.slice(0, name.indexOf(':'));
    if (kind === 'r') requestIds.push(name.slice(2));
    else if (kind === 'idem') claims.push(name);
    // The flag of the tenant is the mark of its move.
    else if (!BESIDE_RECORDS.has(kind) && name !== `blocked:${tenantId}` && name.split(':').some((id) => ids.has(id)))
      own.push(key(name, { isLeftBehind: LEFT_BEHIND.has(kind) }));
  }
  return { requestIds, claims, own };
}

/** The keys of a tenant on a shard, some at a time; one may come twice. */
type FindTenantKeys = (shard: number, owner: StateOwner) => AsyncGenerator<StateKey[]>;

function createFindTenantKeys(client: RedisClient, keyspace: Keyspace): FindTenantKeys {
  const ofTenant = defineScript(client, 'scan-records');
  const prefixOf = (shard: number) => `${keyspace.shard(shard).tag}:`;

  async function ownRequests(shard: number, requestIds: readonly string[], tenantId: string): Promise<StateKey[]> {
    const { record } = keyspace.shard(shard);
    const places = requestIds.length === 0 ? [] : await ofTenant(requestIds.map(record), [tenantId]);
    const candidates = Array.isArray(places) ? places.map((place) => requestIds[Number(place) - 1] ?? '') : [];
    const own = candidates.map(async (id) => {
      const [tenant, retries] = await client.hmget(record(id), 'tenant', 'retries');
      // Tombstones may not say whose they are.
      if (tenant !== tenantId) return [];
      const answer = ['r', 's', 'a', 'e'].map((kind) => key(`${kind}:${id}`, { isAnswer: true }));
      // The list of a call's tries names no tenant.
      return typeof retries === 'string' ? [...answer, key(retries.slice(prefixOf(shard).length))] : answer;
    });
    return (await Promise.all(own)).flat();
  }

  /** A claim outlives its request's record where nothing is kept. It names the tenant; its own name is a hash. */
  async function ownClaims(shard: number, names: readonly string[], tenantId: string): Promise<StateKey[]> {
    if (names.length === 0) return [];
    const values = await client.mget(names.map((name) => prefixOf(shard) + name));
    return names.filter((_, index) => values[index]?.split(' ')[2] === tenantId).map((name) => key(name));
  }

  async function ownOf(shard: number, names: readonly string[], owner: StateOwner): Promise<StateKey[]> {
    const { tenantId } = owner;
    const { requestIds, claims, own } = sortNames(names, owner);
    const [answers, named] = [await ownRequests(shard, requestIds, tenantId), await ownClaims(shard, claims, tenantId)];
    return [...answers, ...named, ...own];
  }

  return async function* (shard: number, owner: StateOwner): AsyncGenerator<StateKey[]> {
    const prefix = prefixOf(shard);
    for await (const names of keyPages(client, prefix)) {
      const own = await ownOf(
        shard,
        names.map((name) => name.slice(prefix.length)),
        owner,
      );
      // Yields even without finds, so that its reader can report progress.
      for (let from = 0; from === 0 || from < own.length; from += AT_ONCE) yield own.slice(from, from + AT_ONCE);
    }
  };
}

/** Counts the work of a tenant that is not at rest on a shard. */
interface OpenWork {
  requests: number;
  /** Ended and not booked, dead letters included. */
  unsettled: number;
  /** For webhooks: a shard without tenants is served by nobody. */
  unpublished: number;
}

type CountOpenWork = (shard: number, tenantId: string) => Promise<OpenWork>;

function createCountOpenWork(client: RedisClient, keyspace: Keyspace): CountOpenWork {
  const requests = createRequestEraser(client, keyspace);
  const outbox = createOutboxSearch(client, keyspace);

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

  async function unpublishedOf(shard: number, tenantId: string): Promise<number> {
    let count = 0;
    for await (const rows of streamPages(client, keyspace.shard(shard).notices))
      count += rows.filter(([, fields]) => parseNotice(fields[1] ?? '')?.tenantId === tenantId).length;
    return count;
  }

  async function requestsOf(shard: number, tenantId: string): Promise<number> {
    let open = 0;
    for await (const ids of requests.open(shard)) {
      const found = await requests.look(shard, ids);
      open += found.filter(
        (request) => request.tenantId === tenantId && (request.state === 'accepted' || request.state === 'running'),
      ).length;
    }
    return open;
  }

  // In this order an end that comes meanwhile is found as a record to settle, and a settled one as a notice.
  return async (shard, tenantId) => ({
    requests: await requestsOf(shard, tenantId),
    unsettled: await unsettledOf(shard, tenantId),
    unpublished: await unpublishedOf(shard, tenantId),
  });
}

interface ClearOptions {
  lingerMs: number;
  onPage?: () => Promise<void>;
}

/** The move is another process's. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken';
  constructor() {
    super('The move of the tenant is in other hands');
  }
}

function createCopyKey(client: RedisClient, keyspace: Keyspace) {
  const bring = defineScript(client, 'import-key');
  const prefixOf = (shard: number) => `${keyspace.shard(shard).tag}:`;
  return async function copyKey(
    { from, to }: { from: number; to: number },
    { name }: StateKey,
    mark: string,
    tenantId: string,
  ): Promise<void> {
    const source = prefixOf(from) + name;
    const [value, expiresAt] = await Promise.all([client.dumpBuffer(source), client.pexpiretime(source)]);
    // -2: there is no such key.
    if (expiresAt === -2) return;
    const keys = [keyspace.shard(to).blocked(tenantId), prefixOf(to) + name];
    // Another tenant that moved here before may have left a newer one; this tenant an older one.
    const done = await bring(keys, [mark, Math.max(0, expiresAt), value, prefixOf(from), prefixOf(to)]);
    if (done !== 1) throw new Overtaken();
  };
}

/**
 * Moves all that Redis has of a tenant. Writing needs a mark on the written shard (`MoveMarks` below), so that an
 * overtaken process changes nothing.
 */
export type TenantState = ReturnType<typeof createTenantState>;

export function createTenantState(client: RedisClient, keyspace: Keyspace) {
  const clearKeys = defineScript(client, 'clear-keys');
  const keysOf = createFindTenantKeys(client, keyspace);
  const copyKey = createCopyKey(client, keyspace);
  const prefixOf = (shard: number) => `${keyspace.shard(shard).tag}:`;

  return {
    openWork: createCountOpenWork(client, keyspace),

    /** Rejects with `Overtaken` where the target has another mark. `onPage` runs between portions. Safe to repeat. */
    async copy(
      way: { from: number; to: number },
      owner: StateOwner,
      mark: string,
      onPage: () => Promise<void>,
    ): Promise<void> {
      for await (const own of keysOf(way.from, owner)) {
        const moving = own.filter(({ isLeftBehind }) => !isLeftBehind);
        await Promise.all(moving.map((each) => copyKey(way, each, mark, owner.tenantId)));
        await onPage();
      }
    },

    /** For a shard that does not serve it; answers stay `lingerMs` for readers. Rejects as above. Safe to repeat. */
    async clear(shard: number, owner: StateOwner, mark: string, { lingerMs, onPage }: ClearOptions): Promise<void> {
      for await (const own of keysOf(shard, owner)) {
        for (const isAnswer of [false, true]) {
          const names = own.filter((each) => each.isAnswer === isAnswer).map(({ name }) => prefixOf(shard) + name);
          if (names.length === 0) continue;
          const keys = [keyspace.shard(shard).blocked(owner.tenantId), ...names];
          if ((await clearKeys(keys, [mark, isAnswer ? lingerMs : 0])) !== 1) throw new Overtaken();
        }
        await onPage?.();
      }
    },
  };
}

/** Longer than any cached principal lives, as for flags of revoked keys. */
const MOVED_MS = 24 * 60 * 60_000;

/** Closes a shard for its tenant during a move. */
export const movingMark = (token: string): string => `moving ${token}`;
/** Says on the former shard where the tenant is. */
export const movedMark = (shard: number): string => `moved ${shard}`;

/** The shard to which a tenant has moved; undefined: it is on its way. */
export function readMark(mark: string): number | undefined {
  const shard = /^moved (\d+)$/.exec(mark)?.[1];
  return shard === undefined ? undefined : Number(shard);
}

/** Admission reads the marks, so none can admit on the former shard (docs/decisions/0002-tenant-shards.md). */
export type MoveMarks = ReturnType<typeof createMoveMarks>;

export function createMoveMarks(client: RedisClient, keyspace: Keyspace) {
  const mark = defineScript(client, 'set-move-marker');

  async function change(shard: number, tenantId: string, from: string, to: string, lifeMs: number): Promise<boolean> {
    return (await inTime(mark([keyspace.shard(shard).blocked(tenantId)], [from, to, lifeMs]))) === 1;
  }

  async function find(shard: number, tenantId: string): Promise<string | undefined> {
    const found = await inTime(client.get(keyspace.shard(shard).blocked(tenantId)));
    return found === null || found === '1' ? undefined : found;
  }

  return {
    /** Any move's mark; undefined: the shard is open. */
    find,
    /** This shard then admits nothing of the tenant. */
    async close(shard: number, tenantId: string, token: string): Promise<void> {
      await change(shard, tenantId, '', movingMark(token), 0);
    },
    isClosed: async (shard: number, tenantId: string, token: string): Promise<boolean> =>
      (await find(shard, tenantId)) === movingMark(token),
    async take(shard: number, tenantId: string, own: string): Promise<void> {
      await change(shard, tenantId, own, '', 0);
    },
    /** Replaces this mark ('' any) by one that leads to `to`. False: the mark is another one. */
    leave: (shard: number, tenantId: string, own: string, to: number): Promise<boolean> =>
      change(shard, tenantId, own, movedMark(to), MOVED_MS),
  };
}
