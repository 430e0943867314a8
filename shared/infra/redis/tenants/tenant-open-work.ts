import { parseNotice } from '../../../contracts/finished-notice.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { streamPages } from '../pages.ts';
import { createOutboxSearch } from '../requests/outbox.ts';
import { createRequestEraser } from '../requests/request-eraser.ts';

/** What of a tenant is not at rest on a shard. */
interface OpenWork {
  /** Requests that wait or run. */
  requests: number;
  /** Requests that have ended and are not booked yet, dead letters included. */
  unsettled: number;
  /** What webhooks are yet to hear of them: a shard without tenants is served by nobody. */
  unpublished: number;
}

/** Counts what keeps a tenant from being moved. */
export type CountOpenWork = (shard: number, tenantId: string) => Promise<OpenWork>;

export function createCountOpenWork(client: RedisClient, keyspace: Keyspace): CountOpenWork {
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

  // One after the other: what ends meanwhile is then found as a record to settle, and what is settled as a notice.
  return async (shard, tenantId) => ({
    requests: await requestsOf(shard, tenantId),
    unsettled: await unsettledOf(shard, tenantId),
    unpublished: await unpublishedOf(shard, tenantId),
  });
}
