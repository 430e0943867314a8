import type { Principal } from '../../shared/domain/principal.ts';
import { putNewest } from '../../shared/domain/bounded-map.ts';
import { repeat } from '../../shared/lifecycle/clock.ts';
import type { PrincipalRepository } from '../../shared/mongo/tenants/principal-repository.ts';

/** How long a known key, and one that MongoDB does not know, is trusted while MongoDB answers. */
const FRESH_MS = 10_000;
const UNKNOWN_MS = 5_000;
/** How long an entry may be used while MongoDB is unavailable. Revocations (flags in Redis) still count at once. */
const STALE_MS = 15 * 60_000;
/** For this long after a failed call, stale entries are returned at once, without another time-out. */
const AWAY_MS = 10_000;
const ENTRIES_MAX = 20_000;
const UNKNOWN_MAX = 10_000;

interface Entry {
  principal: Principal;
  loadedAt: number;
  /** The entry may be out of date, so it lets nobody in. It still shows that the key is not an invented one. */
  isDoubtful?: boolean;
}

/** A look-up under way, and the invalidations since it began, which its result may not reflect. */
interface Load {
  announced: Set<string>;
  /** Some invalidations may have been missed. */
  isDoubtful: boolean;
}

/** Whether no invalidation concerns the result. A key that was not found may be any key announced meanwhile. */
function isCertain({ announced, isDoubtful }: Load, read: Principal | undefined): boolean {
  if (isDoubtful) return false;
  return read === undefined ? announced.size === 0 : !announced.has(read.keyId) && !announced.has(read.tenantId);
}

type Lookup = Pick<PrincipalRepository, 'findByHash'>;

/** The entry of a key, unless it is doubtful. */
function certainOf(entries: ReadonlyMap<string, Entry>, hash: string): Entry | undefined {
  const entry = entries.get(hash);
  return entry?.isDoubtful === true ? undefined : entry;
}

/** Looks keys up in MongoDB, each once at a time. `keep` gets a result that no invalidation concerns. */
function createLoads(repository: Lookup, keep: (hash: string, principal: Principal | undefined, now: number) => void) {
  /** Look-ups that other calls may join. An invalidation removes them all: they may bring what was just revoked. */
  const loading = new Map<string, Promise<Principal | undefined>>();
  const underWay = new Set<Load>();

  async function load(hash: string, now: number): Promise<Principal | undefined> {
    const since: Load = { announced: new Set(), isDoubtful: false };
    underWay.add(since);
    try {
      const principal = await repository.findByHash(hash);
      if (isCertain(since, principal)) keep(hash, principal, now);
      return principal;
    } finally {
      underWay.delete(since);
    }
  }

  function loadOnce(hash: string, now: number): Promise<Principal | undefined> {
    const running = loading.get(hash);
    if (running !== undefined) return running;
    const begun = load(hash, now).finally(() => {
      if (loading.get(hash) === begun) loading.delete(hash);
    });
    loading.set(hash, begun);
    return begun;
  }

  return {
    load: loadOnce,

    announce(id: string): void {
      for (const { announced } of underWay) announced.add(id);
      loading.clear();
    },

    doubt(): void {
      for (const load of underWay) load.isDoubtful = true;
      loading.clear();
    },
  };
}

export type PrincipalCache = ReturnType<typeof createPrincipalCache>;

export function createPrincipalCache(repository: Lookup) {
  const entries = new Map<string, Entry>();
  /** Hashes that belong to no key, and when that was learned. In `entries`, invented keys would push out real ones. */
  const unknown = new Map<string, number>();
  const loads = createLoads(repository, keep);
  let failedAt = -Infinity;

  function keep(hash: string, principal: Principal | undefined, now: number): void {
    entries.delete(hash);
    unknown.delete(hash);
    if (principal === undefined) putNewest(unknown, hash, now, UNKNOWN_MAX);
    else putNewest(entries, hash, { principal, loadedAt: now }, ENTRIES_MAX);
  }

  /** `stale` is the fallback if MongoDB is unavailable. */
  async function reload(hash: string, now: number, stale: Principal | undefined): Promise<Principal | undefined> {
    if (stale !== undefined && now - failedAt < AWAY_MS) return stale;
    try {
      return await loads.load(hash, now);
    } catch (error) {
      failedAt = now;
      if (stale !== undefined) return stale;
      throw error;
    }
  }

  function fresh(hash: string, now: number): Principal | undefined {
    const entry = certainOf(entries, hash);
    return entry !== undefined && now - entry.loadedAt < FRESH_MS ? entry.principal : undefined;
  }

  return {
    /** The principal, if `find` could return it without asking MongoDB. Undefined: call `find`. */
    fresh,

    /** Undefined: unknown key. Rejects if MongoDB is unavailable and the key is not cached. */
    async find(hash: string, now: number): Promise<Principal | undefined> {
      const found = fresh(hash, now);
      if (found !== undefined) return found;
      const entry = certainOf(entries, hash);
      const age = entry === undefined ? Infinity : now - entry.loadedAt;
      if (now - (unknown.get(hash) ?? -Infinity) < UNKNOWN_MS) return undefined;
      return reload(hash, now, age < STALE_MS ? entry?.principal : undefined);
    },

    /** Whether the key was known within the last 15 minutes. */
    isKnown(hash: string, now: number): boolean {
      const entry = entries.get(hash);
      return entry !== undefined && now - entry.loadedAt < STALE_MS;
    },

    /** Notes that the tenant is now on this shard. */
    relocate(tenantId: string, shard: number): void {
      for (const entry of entries.values()) {
        if (entry.principal.tenantId === tenantId) entry.principal = { ...entry.principal, shard };
      }
    },

    /** Discards what is cached for a key or a tenant, by its id. */
    invalidate(id: string): void {
      loads.announce(id);
      for (const entry of entries.values()) {
        const { principal } = entry;
        if (principal.keyId === id || principal.tenantId === id) entry.isDoubtful = true;
      }
    },

    /** Marks every entry as doubtful, because invalidations may have been missed. */
    clear(): void {
      loads.doubt();
      for (const entry of entries.values()) entry.isDoubtful = true;
      unknown.clear();
    },
  };
}

/** Often enough for people who look at `last_used_at`, rarely enough to cost nothing. */
const FLUSH_MS = 5_000;

/** Collects `last_used_at` of keys and writes it in batches. */
export function createLastUsed(repository: Pick<PrincipalRepository, 'touch'>) {
  let noted = new Map<string, number>();

  async function flush(): Promise<void> {
    if (noted.size === 0) return;
    const batch = noted;
    noted = new Map();
    try {
      await repository.touch(batch);
    } catch {
      // MongoDB is unavailable: keep the newer of both times for the next try.
      for (const [keyId, time] of batch) noted.set(keyId, Math.max(time, noted.get(keyId) ?? 0));
    }
  }

  const flushing = repeat(
    flush,
    () => FLUSH_MS,
    () => undefined,
  );
  return {
    note: (keyId: string, now: number): void => {
      noted.set(keyId, now);
    },
    /** Writes the collected times and stops. */
    async close(): Promise<void> {
      await flushing.stop();
      await flush();
    },
  };
}
