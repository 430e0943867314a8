import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import { toCredits } from '../../shared/domain/pricing/pricing.ts';
import type { Usage } from '../../shared/contracts/events.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import { isMongoAway } from '../../shared/infra/mongo/mongo-faults.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { WatchAccount } from '../../shared/webhooks/account-watch.ts';
import type { ErasureGate } from '../compliance/erasure-gate.ts';
import type { EventSink, RaisedEvent } from '../../shared/webhooks/event-sink.ts';
import type { Claimed, Outcome } from '../pipeline/stage.ts';

export interface ChatEventsDeps {
  events: Pick<EventSink, 'publish' | 'tryPublish' | 'wants'>;
  watchAccount: WatchAccount;
  gate: Pick<ErasureGate, 'nameOf'>;
  clock: Clock;
  log: Logger;
}

/**
 * Publishes the events of requests. Those of a booked request go out before its booking is acknowledged, so they survive
 * a worker that dies; what has no booking (a failure without text, a flag of moderation) is published by the worker that
 * ended the request.
 */
export interface ChatEvents {
  /** Rejects while MongoDB is away; the caller has to repeat it. */
  publishBooked(records: readonly SettlementRecord[]): Promise<void>;
  /** Listens to `request.finished`. */
  publishFinished(run: Claimed, outcome: Outcome): void;
  /** Resolves when nothing is being published. */
  idle(): Promise<void>;
}

function toUsage({ promptTokens, completionTokens }: Usage) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

type Described = Pick<SettlementRecord, 'requestId' | 'keyId' | 'mode' | 'tier' | 'endpoint' | 'entityId'>;

function describe({ requestId, keyId, mode, tier, endpoint, entityId }: Described) {
  return { request_id: requestId, key_id: keyId, mode, model: tier, endpoint, entity_id: entityId ?? null };
}

/** A cancelled request has neither been completed nor failed. */
function toBookedEvent(record: SettlementRecord, now: number): RaisedEvent[] {
  const { tenantId, requestId: cause, finishReason } = record;
  if (finishReason === 'cancelled') return [];
  const data = { ...describe(record), finish_reason: finishReason, usage: toUsage(record) };
  return finishReason === 'error'
    ? [{ tenantId, type: 'chat.failed', cause, data: { ...data, error_code: null }, now }]
    : [{ tenantId, type: 'chat.completed', cause, data: { ...data, credits: toCredits(record.costMicro) }, now }];
}

function toFinishedEvents(
  { envelope, answer }: Pick<Claimed, 'envelope' | 'answer'>,
  { finishReason, usage, error }: Outcome,
  entityId: string | undefined,
  now: number,
) {
  const { tenantId, requestId: cause } = envelope;
  const about = describe({ ...envelope, ...(entityId === undefined ? {} : { entityId }) });
  const found: RaisedEvent[] = [];
  if (finishReason === 'error') {
    const data = { ...about, finish_reason: finishReason, usage: toUsage(usage), error_code: error?.code ?? null };
    found.push({ tenantId, type: 'chat.failed', cause, data, now });
  }
  const { verdict = 'passed', categories = [] } = answer.trace.moderation ?? {};
  if (verdict === 'flagged_input' || verdict === 'flagged_output') {
    const side = verdict === 'flagged_input' ? 'input' : 'output';
    found.push({ tenantId, type: 'moderation.flagged', cause, data: { ...about, side, categories }, now });
  }
  return found;
}

/** Whether the end of a request has events without a booking. */
function hasEvents({ answer }: Claimed, { finishReason }: Outcome): boolean {
  const { verdict } = answer.trace.moderation ?? {};
  return finishReason === 'error' || verdict === 'flagged_input' || verdict === 'flagged_output';
}

export function createChatEvents({ events, watchAccount, gate, clock, log }: ChatEventsDeps): ChatEvents {
  const publishing = new Set<Promise<void>>();

  async function raiseBooked(records: readonly SettlementRecord[]): Promise<void> {
    const now = clock.now();
    const raised = records.flatMap((record) => toBookedEvent(record, now));
    for (const tenantId of new Set(records.map((record) => record.tenantId)))
      raised.push(...(await watchAccount(tenantId, now)));
    await events.publish(raised);
  }

  /** An entity that was erased since the request was accepted goes by its pseudonym. */
  async function publish({ envelope, answer, seq }: Claimed, outcome: Outcome, now: number): Promise<void> {
    const { tenantId, requestId, request } = envelope;
    try {
      if (!(await events.wants(tenantId, ['chat.failed', 'moderation.flagged']))) return;
      const { entityId } = request;
      const name = entityId === undefined ? undefined : await gate.nameOf(tenantId, entityId, seq);
      await events.tryPublish(toFinishedEvents({ envelope, answer }, outcome, name, now));
    } catch (error) {
      log.warn('Webhook events of an ended request are lost, if anybody wants them.', { tenantId, requestId, error });
    }
  }

  return {
    async publishBooked(records) {
      try {
        await raiseBooked(records);
      } catch (error) {
        if (isMongoAway(error)) throw error;
        // Money must not wait for an event that can never be published.
        log.error('Webhook events of booked requests are lost.', { count: records.length, error });
      }
    },

    publishFinished(run, outcome) {
      if (!hasEvents(run, outcome)) return;
      const published = publish(run, outcome, clock.now()).finally(() => publishing.delete(published));
      publishing.add(published);
    },

    async idle() {
      await Promise.all(publishing);
    },
  };
}
