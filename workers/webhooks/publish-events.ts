import { toWireUsage } from '../../shared/contracts/events.ts';
import type { FinishedNotice } from '../../shared/contracts/finished-notice.ts';
import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import { overseersOf } from '../../shared/contracts/space.ts';
import { toCredits } from '../../shared/domain/pricing.ts';
import type { ErasureGate } from '../../shared/erasure-gate.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import { isMongoAway } from '../../shared/mongo/faults.ts';
import type { ExpiringKeys, KeyRow } from '../../shared/mongo/tenants/key-repository.ts';
import type { WebhookRepository } from '../../shared/mongo/webhooks/webhook-repository.ts';
import { FLEET_SHARD } from '../../shared/redis/stores/leader-lease.ts';
import type { LeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import type { NoticeStore } from '../../shared/requests/outbox.ts';
import type { EventSink, WatchAccount, WebhookEvent } from '../../shared/webhooks/publish.ts';

export interface PublishNoticesDeps {
  notices: NoticeStore;
  leases: LeaderLease;
  /** Rejects while MongoDB is unavailable. */
  publish: (notices: readonly FinishedNotice[]) => Promise<void>;
}

const NOTICES_TASK = 'notices';
const AT_ONCE = 200;

/**
 * Publishes events of requests that do not come from bookings. A notice is removed only once it is published, so no
 * worker's death loses it; published twice it is still one event.
 */
export function createPublishNotices({ notices, leases, publish }: PublishNoticesDeps) {
  return async (shard: number): Promise<void> => {
    if (!(await leases.hold(shard, NOTICES_TASK))) return;
    const found = await notices.read(shard, AT_ONCE);
    if (found.length === 0) return;
    await publish(found.flatMap(({ notice }) => (notice === undefined ? [] : [notice])));
    await notices.remove(
      shard,
      found.map(({ id }) => id),
    );
  };
}

export interface AnnounceExpiringKeysDeps {
  webhooks: WebhookRepository;
  keys: ExpiringKeys;
  events: EventSink;
  leases: LeaderLease;
  clock: Clock;
}

const EXPIRING_KEYS_TASK = 'expiring-keys';
const EVERY_MS = 10 * 60_000;
const DAY_MS = 24 * 3_600_000;

/** A key whose expiry is changed is announced again. */
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
    if (!(await leases.takeTurn(FLEET_SHARD, EXPIRING_KEYS_TASK, EVERY_MS))) return;
    try {
      const now = clock.now();
      for (const tenantId of await webhooks.tenantsWith('key.expiring')) {
        const expiring = await keys.between(tenantId, now, now + 7 * DAY_MS);
        await events.publish(expiring.map((key) => toEvent(key, now)));
      }
    } catch (error) {
      await leases.release(FLEET_SHARD, EXPIRING_KEYS_TASK);
      throw error;
    }
  };
}

export interface ChatEventsDeps {
  events: Pick<EventSink, 'publish'>;
  watchAccount: WatchAccount;
  gate: Pick<ErasureGate, 'nameOf'>;
  clock: Clock;
  log: Logger;
}

/**
 * Publishes the events of requests: for a booked request before its booking is acknowledged, for others before their
 * notice is removed, so that no event is lost when a worker dies.
 */
export type ChatEvents = ReturnType<typeof createChatEvents>;

type Described = Pick<SettlementRecord, 'requestId' | 'keyId' | 'mode' | 'tier' | 'endpoint' | 'entityId'>;

function describe({ requestId, keyId, mode, tier, endpoint, entityId }: Described) {
  return { request_id: requestId, key_id: keyId, mode, model: tier, endpoint, entity_id: entityId ?? null };
}

/** A cancelled request has neither completed nor failed; a failed one has a notice of its own. */
function toBookedEvent(record: SettlementRecord, now: number): WebhookEvent[] {
  const { tenantId, mode, requestId: cause, finishReason, costMicro } = record;
  if (finishReason === 'cancelled' || finishReason === 'error') return [];
  const data = {
    ...describe(record),
    finish_reason: finishReason,
    usage: toWireUsage(record),
    credits: toCredits(costMicro),
  };
  return [{ tenantId, mode, type: 'chat.completed', cause, data, now }];
}

function toNoticedEvents(notice: FinishedNotice): WebhookEvent[] {
  const { tenantId, mode, requestId: cause, finishReason, usage, errorCode, flagged, finishedAt: now } = notice;
  const about = describe(notice);
  const found: WebhookEvent[] = [];
  if (finishReason === 'error') {
    const data = { ...about, finish_reason: finishReason, usage: toWireUsage(usage), error_code: errorCode };
    found.push({ tenantId, mode, type: 'chat.failed', cause, data, now });
  }
  if (flagged !== undefined) {
    found.push({ tenantId, mode, type: 'moderation.flagged', cause, data: { ...about, ...flagged }, now });
  }
  return found;
}

export function createChatEvents({ events, watchAccount, gate, clock, log }: ChatEventsDeps) {
  async function publishAllBooked(records: readonly SettlementRecord[]): Promise<void> {
    const now = clock.now();
    const found = records.flatMap((record) => toBookedEvent(record, now));
    for (const tenantId of new Set(records.map((record) => record.tenantId)))
      found.push(...(await watchAccount(tenantId, now)));
    await events.publish(found);
  }

  /** An entity erased since the request was accepted is named by its pseudonym. */
  async function pseudonymize(notice: FinishedNotice): Promise<FinishedNotice> {
    const { entityId, seq } = notice;
    return entityId === undefined ? notice : { ...notice, entityId: await gate.nameOf(notice, entityId, seq) };
  }

  async function publishAllNotices(notices: readonly FinishedNotice[]): Promise<void> {
    const named = await Promise.all(notices.map(pseudonymize));
    await events.publish(named.flatMap(toNoticedEvents));
  }

  /** If an event can never be published, only that event is lost, not those published with it or waiting after it. */
  async function unlessImpossible<T extends { requestId: string }>(
    ended: readonly T[],
    publish: (some: readonly T[]) => Promise<void>,
  ): Promise<void> {
    try {
      await publish(ended);
    } catch (error) {
      if (isMongoAway(error)) throw error;
      const [only, ...more] = ended;
      if (only === undefined) return;
      if (more.length > 0) for (const one of ended) await unlessImpossible([one], publish);
      else log.error('The webhook events of an ended request are lost.', { requestId: only.requestId, error });
    }
  }

  return {
    /** Rejects while MongoDB is unavailable; the caller must retry. */
    publishBooked: (records: readonly SettlementRecord[]): Promise<void> => unlessImpossible(records, publishAllBooked),
    /** The same for failures and for requests flagged by moderation. */
    publishNotices: (notices: readonly FinishedNotice[]): Promise<void> => unlessImpossible(notices, publishAllNotices),
  };
}
