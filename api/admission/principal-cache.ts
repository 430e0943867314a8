import type { Principal } from '../../shared/domain/keys/principal.ts';
import type { PrincipalRepository } from '../../shared/infra/mongo/principal-repository.ts';

/** design.md section 6. */
const FRESH_MS = 10_000;
const UNKNOWN_MS = 5_000;
/** While MongoDB is away; revocations still count, their flags are in Redis. */
const STALE_MS = 15 * 60_000;
const ENTRIES_MAX = 20_000;

interface Entry {
  /** Undefined: no key has this hash. */
  principal: Principal | undefined;
  loadedAt: number;
}

export interface PrincipalCache {
  /** Undefined: unknown key. Rejects when MongoDB is away and the key is not cached. */
  find(hash: string, now: number): Promise<Principal | undefined>;
  /** Drops everything known of a key or a tenant. */
  invalidate(id: string): void;
  /** Drops everything, for when invalidations may have been missed. */
  clear(): void;
}

export function createPrincipalCache(repository: Pick<PrincipalRepository, 'findByHash'>): PrincipalCache {
  const entries = new Map<string, Entry>();
  const loading = new Map<string, Promise<Principal | undefined>>();
  // A load that began before an invalidation may carry what was just revoked: it is not kept.
  let generation = 0;

  async function load(hash: string, now: number): Promise<Principal | undefined> {
    const begunIn = generation;
    const principal = await repository.findByHash(hash);
    if (begunIn === generation) {
      entries.delete(hash);
      entries.set(hash, { principal, loadedAt: now });
      const oldest = entries.keys().next();
      if (entries.size > ENTRIES_MAX && oldest.done !== true) entries.delete(oldest.value);
    }
    return principal;
  }

  function loadOnce(hash: string, now: number): Promise<Principal | undefined> {
    let running = loading.get(hash);
    if (running === undefined) {
      running = load(hash, now).finally(() => loading.delete(hash));
      loading.set(hash, running);
    }
    return running;
  }

  return {
    async find(hash, now) {
      const entry = entries.get(hash);
      const age = entry === undefined ? Infinity : now - entry.loadedAt;
      if (entry !== undefined && age < (entry.principal === undefined ? UNKNOWN_MS : FRESH_MS)) return entry.principal;
      try {
        return await loadOnce(hash, now);
      } catch (error) {
        if (entry?.principal !== undefined && age < STALE_MS) return entry.principal;
        throw error;
      }
    },

    invalidate(id) {
      generation += 1;
      for (const [hash, { principal }] of entries) {
        if (principal?.keyId === id || principal?.tenantId === id) entries.delete(hash);
      }
    },

    clear() {
      generation += 1;
      entries.clear();
    },
  };
}
