import type { FinishedNotice } from '../../shared/contracts/finished-notice.ts';
import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import { toCredits } from '../../shared/domain/pricing/pricing.ts';
import { toWireUsage } from '../../shared/contracts/events.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import { isMongoAway } from '../../shared/infra/mongo/mongo-faults.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { WatchAccount } from '../../shared/webhooks/account-watch.ts';
import type { ErasureGate } from '../../shared/compliance/erasure-gate.ts';
import type { EventSink, WebhookEvent } from '../../shared/webhooks/event-sink.ts';

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
export interface ChatEvents {
  /** Rejects while MongoDB is unavailable; the caller must retry. */
  publishBooked(records: readonly SettlementRecord[]): Promise<void>;
  /** The same for failures and for requests flagged by moderation. */
  publishNotices(notices: readonly FinishedNotice[]): Promise<void>;
}

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

export function createChatEvents({ events, watchAccount, gate, clock, log }: ChatEventsDeps): ChatEvents {
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
    publishBooked: (records) => unlessImpossible(records, publishAllBooked),
    publishNotices: (notices) => unlessImpossible(notices, publishAllNotices),
  };
}
