import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { keyPages } from '../pages.ts';
import { defineScript } from '../scripts.ts';

/** Whose keys are meant: those of a tenant and of its API keys. */
export interface StateOwner {
  tenantId: string;
  keyIds: readonly string[];
}

const AT_ONCE = 100;

/** Empty but for what nobody has tidied up: a tenant that is moved has nothing open and nothing pending. */
const LEFT_BEHIND: ReadonlySet<string> = new Set(['pend', 'open']);

/** Found by the records of their requests. */
const BESIDE_RECORDS: ReadonlySet<string> = new Set(['s', 'a', 'b', 'e']);

export interface StateKey {
  /** Behind the shard's prefix. */
  name: string;
  /** A request's record, or a part of what it has left. */
  isAnswer: boolean;
  isLeftBehind: boolean;
  /** Whose it is cannot be told any more: it is copied where there is no newer one, and not taken away. */
  isShared: boolean;
}

const key = (name: string, more: Partial<StateKey> = {}): StateKey => ({
  name,
  isAnswer: false,
  isLeftBehind: false,
  isShared: false,
  ...more,
});

/** The keys of a tenant on a shard, some at a time; one may come twice. */
export type FindTenantKeys = (shard: number, owner: StateOwner) => AsyncGenerator<StateKey[]>;

export function createFindTenantKeys(client: RedisClient, keyspace: Keyspace): FindTenantKeys {
  const ofTenant = defineScript(client, 'of-tenant');
  const prefixOf = (shard: number) => `${keyspace.shard(shard).tag}:`;

  /** Whose each of some requests is: undefined for another tenant's, null where nobody knows. */
  async function tenantsOf(shard: number, requestIds: readonly string[], tenantId: string) {
    const { record } = keyspace.shard(shard);
    const places = requestIds.length === 0 ? [] : await ofTenant(requestIds.map(record), [tenantId]);
    const found = new Map<string, string | null>();
    const candidates = Array.isArray(places) ? places.map((place) => requestIds[Number(place) - 1] ?? '') : [];
    await Promise.all(candidates.map(async (id) => found.set(id, await client.hget(record(id), 'tenant'))));
    return found;
  }

  async function ownRequests(shard: number, requestIds: readonly string[], tenantId: string): Promise<StateKey[]> {
    const tenants = await tenantsOf(shard, requestIds, tenantId);
    // Of some records nobody knows whose they are: tombstones.
    const own = [...tenants].flatMap(([requestId, tenant]) => (tenant === tenantId ? [requestId] : []));
    return own.flatMap((id) => ['r', 's', 'a', 'e'].map((kind) => key(`${kind}:${id}`, { isAnswer: true })));
  }

  /**
   * A claim outlives the record of its request where nothing is kept, and names its tenant; its own name is a hash. Those of
   * versions that did not write the tenant into it are found by the record, or shared.
   */
  async function ownClaims(shard: number, names: readonly string[], tenantId: string): Promise<StateKey[]> {
    if (names.length === 0) return [];
    const values = await client.mget(names.map((name) => prefixOf(shard) + name));
    const claims = values.map((value) => value?.split(' ') ?? []);
    const unnamed = claims.flatMap(([requestId, , owner]) =>
      requestId === undefined || owner !== undefined ? [] : [requestId],
    );
    const tenants = await tenantsOf(shard, unnamed, tenantId);
    return names.flatMap((name, index) => {
      const [requestId = '', , owner] = claims[index] ?? [];
      if (owner !== undefined) return owner === tenantId ? [key(name)] : [];
      const tenant = tenants.get(requestId);
      return tenant === undefined ? [] : [key(name, { isShared: tenant === null })];
    });
  }

  async function ownOf(shard: number, names: readonly string[], { tenantId, keyIds }: StateOwner): Promise<StateKey[]> {
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
      // Where nothing is found, too: whoever goes through them says now and then that it does.
      for (let from = 0; from === 0 || from < own.length; from += AT_ONCE) yield own.slice(from, from + AT_ONCE);
    }
  };
}
