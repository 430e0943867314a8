import type { TestService, TestTenant } from './service.ts';
import { openStream } from './stream-client.ts';

export type ShardTenant = TestTenant & { shard: number };

/** One tenant on each of the first `count` shards. */
export async function tenantsByShard(service: TestService, count: number): Promise<ShardTenant[]> {
  const found = new Map<number, ShardTenant>();
  while (found.size < count) {
    const tenant = await service.startTenant();
    const row = await service.models.tenants.findById(tenant.tenantId).lean();
    if (row !== null && row.shard < count) found.set(row.shard, { ...tenant, shard: row.shard });
  }
  return [...found.values()].sort((a, b) => a.shard - b.shard);
}

/** Whether a short stream of each tenant comes whole. */
export async function answersAll(service: TestService, tenants: readonly TestTenant[]): Promise<boolean> {
  const ends = await Promise.all(
    tenants.map(async ({ key }) => {
      const stream = await openStream(service.url, key, { messages: [{ role: 'user', content: 'Hi' }] });
      return stream.ended;
    }),
  );
  return ends.every(({ finishReason, isDone }) => finishReason === 'stop' && isDone);
}
