import type { WebhookEvent, EventSink } from '../../shared/webhooks/event-sink.ts';
import type { ExpiringKeys, KeyRow } from '../../shared/infra/mongo/tenants/key-repository.ts';
import type { WebhookRepository } from '../../shared/infra/mongo/webhooks/webhook-repository.ts';
import { overseersOf } from '../../shared/contracts/space.ts';
import { FLEET_SHARD } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';

export interface AnnounceExpiringKeysDeps {
  webhooks: Pick<WebhookRepository, 'tenantsWith'>;
  keys: ExpiringKeys;
  events: Pick<EventSink, 'publish'>;
  leases: Pick<LeaderLease, 'takeTurn' | 'release'>;
  clock: Clock;
}

const TASK = 'expiring-keys';
const EVERY_MS = 10 * 60_000;
const DAY_MS = 24 * 3_600_000;

/** If a key's expiry is changed, it is announced again. */
function toEvent({ _id, tenantId, mode, name, expiresAt }: KeyRow & { expiresAt: number }, now: number): WebhookEvent {
  const days = expiresAt - now <= DAY_MS ? 1 : 7;
  return {
    tenantId,
    mode: overseersOf(mode),
    type: 'key.expiring',
    cause: `${_id}:${expiresAt}:${days}`,
    data: { key_id: _id, name, expires_at: Math.floor(expiresAt / 1000), days_left: days },
    now,
  };
}

/** Publishes keys that expire within seven days and, once more, within one. One worker does this for the fleet. */
export function createAnnounceExpiringKeys(deps: AnnounceExpiringKeysDeps): () => Promise<void> {
  const { webhooks, keys, events, leases, clock } = deps;
  return async () => {
    if (!(await leases.takeTurn(FLEET_SHARD, TASK, EVERY_MS))) return;
    try {
      const now = clock.now();
      for (const tenantId of await webhooks.tenantsWith('key.expiring')) {
        const expiring = await keys.between(tenantId, now, now + 7 * DAY_MS);
        await events.publish(expiring.map((key) => toEvent(key, now)));
      }
    } catch (error) {
      await leases.release(FLEET_SHARD, TASK);
      throw error;
    }
  };
}
