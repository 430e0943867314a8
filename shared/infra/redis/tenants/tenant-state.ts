import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import { createFindTenantKeys } from './tenant-keys.ts';
import type { StateKey, StateOwner } from './tenant-keys.ts';
import { createCountOpenWork } from './tenant-open-work.ts';
import type { CountOpenWork } from './tenant-open-work.ts';

/**
 * All that Redis has of one tenant, for a move to another shard. Writing needs a mark on the shard that is written
 * (move-marks.ts), so that a process which has been overtaken changes nothing.
 */
export interface TenantState {
  openWork: CountOpenWork;
  /** Rejects with `Overtaken` where the mark of the target is another one. `onPage` runs between portions. Safe to repeat. */
  copy(way: { from: number; to: number }, owner: StateOwner, mark: string, onPage: () => Promise<void>): Promise<void>;
  /**
   * Takes everything of the tenant away from a shard that does not serve it; answers stay for `lingerMs`, for whoever is
   * reading one. Rejects as above. Safe to repeat.
   */
  clear(shard: number, owner: StateOwner, mark: string, options: ClearOptions): Promise<void>;
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

export function createTenantState(client: RedisClient, keyspace: Keyspace): TenantState {
  const bring = defineScript(client, 'bring-key');
  const clearKeys = defineScript(client, 'clear-keys');
  const keysOf = createFindTenantKeys(client, keyspace);
  const prefixOf = (shard: number) => `${keyspace.shard(shard).tag}:`;

  async function copyOne(
    { from, to }: { from: number; to: number },
    { name, isShared }: StateKey,
    mark: string,
    tenantId: string,
  ): Promise<void> {
    const source = prefixOf(from) + name;
    const [value, expiresAt] = await Promise.all([client.dumpBuffer(source), client.pexpiretime(source)]);
    // -2: there is no such key.
    if (expiresAt === -2) return;
    const keys = [keyspace.shard(to).blocked(tenantId), prefixOf(to) + name];
    // Of another tenant, which has been moved before, a newer one may be there; of this one an older one.
    const stays = isShared ? 1 : 0;
    const done = await bring(keys, [mark, Math.max(0, expiresAt), value, prefixOf(from), prefixOf(to), stays]);
    if (done !== 1) throw new Overtaken();
  }

  return {
    openWork: createCountOpenWork(client, keyspace),

    async copy(way, owner, mark, onPage) {
      for await (const own of keysOf(way.from, owner)) {
        const moving = own.filter(({ isLeftBehind }) => !isLeftBehind);
        await Promise.all(moving.map((each) => copyOne(way, each, mark, owner.tenantId)));
        await onPage();
      }
    },

    async clear(shard, owner, mark, { lingerMs, onPage }) {
      for await (const own of keysOf(shard, owner)) {
        const gone = own.filter(({ isShared }) => !isShared);
        for (const isAnswer of [false, true]) {
          const names = gone.filter((each) => each.isAnswer === isAnswer).map(({ name }) => prefixOf(shard) + name);
          if (names.length === 0) continue;
          const keys = [keyspace.shard(shard).blocked(owner.tenantId), ...names];
          if ((await clearKeys(keys, [mark, isAnswer ? lingerMs : 0])) !== 1) throw new Overtaken();
        }
        await onPage?.();
      }
    },
  };
}
