import type { Response } from 'supertest';

import { waitFor } from './chat.ts';
import type { TestService } from './service.ts';

/** The shard of a tenant as its row says. */
export async function shardOf(service: TestService, tenantId: string): Promise<number> {
  const row = await service.models.tenants.findById(tenantId).lean();
  if (row === null) throw new Error(`There is no tenant ${tenantId}`);
  return row.shard;
}

export function askToMove(service: TestService, tenantId: string, shard: number): Promise<Response> {
  return service.admin('post', `/tenants/${tenantId}/move`, { shard });
}

/** Moves a tenant as soon as it is idle. */
export function moveWhenIdle(service: TestService, tenantId: string, shard: number): Promise<Response> {
  return waitFor(
    async () => {
      const answer = await askToMove(service, tenantId, shard);
      return answer.status === 409 ? undefined : answer;
    },
    'the tenant to be idle',
    40_000,
  );
}

/** What Redis has of a tenant on a shard, without what stays for whoever reads an answer, by kind. */
export async function kindsOn(service: TestService, shard: number, ids: readonly string[]): Promise<string[]> {
  const prefix = `${service.keyspace.shard(shard).tag}:`;
  const names = (await service.redis.keys(`${prefix}*`)).map((name) => name.slice(prefix.length).split(':'));
  const own = names.filter((parts) => parts.some((part) => ids.includes(part)) && parts[0] !== 'interactive');
  return [...new Set(own.map(([kind = '']) => kind))].sort();
}
