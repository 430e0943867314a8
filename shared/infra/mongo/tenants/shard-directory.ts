import type { Models } from '../models.ts';

/** Which shards have tenants, beside those that new tenants are spread over. */
export interface ShardDirectory {
  list(): Promise<number[]>;
}

export function createShardDirectory({ tenants }: Pick<Models, 'tenants'>, shards: number): ShardDirectory {
  return {
    async list() {
      const used = await tenants.distinct('shard');
      const fresh = Array.from({ length: shards }, (_, shard) => shard);
      return [...new Set([...fresh, ...used])].sort((a, b) => a - b);
    },
  };
}
