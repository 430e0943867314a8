import type { WebhookClient, WebhookReply } from '../../shared/http/webhook-client.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { CredentialCipher } from '../../shared/mongo/credentials.ts';
import type {
  DeliveryAttempt,
  WebhookDeliveryRepository,
  WebhookDeliveryRow,
} from '../../shared/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookChanges, WebhookRepository, WebhookRow } from '../../shared/mongo/webhooks/webhook-repository.ts';
import type { EventSink } from '../../shared/webhooks/publish.ts';
import { signedHeaders } from '../../shared/webhooks/sign.ts';
import type { WorkerEvents } from '../pipeline/worker-events.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The delays between attempts (docs/spec.md#webhooks); the first attempt is made at once. */
const RETRY_DELAYS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR] as const;

const ATTEMPTS_MAX = RETRY_DELAYS_MS.length + 1;

/** The largest part added to a delay, so that receivers that failed together are not retried together. */
const JITTER = 0.1;

/** Milliseconds since the epoch; undefined: never. `failed` counts from 1, `chance` is at least 0 and below 1. */
function nextAttemptAt(failed: number, now: number, chance: number): number | undefined {
  const delay = RETRY_DELAYS_MS[failed - 1];
  return delay === undefined ? undefined : now + Math.round(delay * (1 + JITTER * chance));
}

const FAILING_MAX_MS = 5 * 24 * HOUR;

interface FailingReceiver {
  /** The first of the failed attempts began then; milliseconds since the epoch. */
  failingSince: number;
  failures: number;
}

/**
 * True once a webhook is to be disabled: its receiver has failed for long, and as many attempts as one delivery gets.
 * If events are rare, two failures a week apart mean little.
 */
function isGivenUp({ failingSince, failures }: FailingReceiver, now: number): boolean {
  return now - failingSince >= FAILING_MAX_MS && failures >= ATTEMPTS_MAX;
}

export interface DeliverDeps {
  webhooks: WebhookRepository;
  deliveries: WebhookDeliveryRepository;
  client: WebhookClient;
  cipher: CredentialCipher;
  events: EventSink;
  announce: (tenantId: string) => Promise<void>;
  /** At least 0 and below 1. */
  random: () => number;
  clock: Clock;
  telemetry: Emitter<WorkerEvents>;
  log: Logger;
}

/** Longer than an attempt can take: a worker that has not recorded its attempt by then is dead. */
const LEASE_MS = 30_000;
const SLOW_MS = 3_000;
const GONE = 410;

/**
 * Attempts the next due delivery of a webhook. `none`: nothing is due, or the webhook is gone or disabled; `failed` and
 * `slow`: its receiver keeps others waiting.
 */
export type DeliverNext = (tenantId: string, webhookId: string) => Promise<'none' | 'done' | 'slow' | 'failed'>;

export function isSlow({ failingSince, slow }: WebhookRow): boolean {
  return failingSince !== undefined || slow === true;
}

function toAttempt({ status, error }: WebhookReply, at: number, now: number): DeliveryAttempt & { ok: boolean } {
  const attempt = { at, durationMs: now - at, ...(status === undefined ? {} : { status }) };
  if (status !== undefined && status >= 200 && status < 300) return { ...attempt, ok: true };
  const redirect = status !== undefined && status >= 300 && status < 400 ? ' Redirects are not followed.' : '';
  return { ...attempt, ok: false, error: error ?? `The receiver answered with status ${status}.${redirect}` };
}

/** Undefined: the secrets were encrypted with a key that this worker does not have. */
function readSecrets(deps: DeliverDeps, webhookId: string, encrypted: readonly string[]): string[] | undefined {
  const { cipher, log } = deps;
  try {
    return encrypted.map((one) => cipher.decrypt(one, `webhooks/${webhookId}`));
  } catch (error) {
    log.error(
      'The secret of a webhook cannot be decrypted; is its key missing in CREDENTIALS_KEY and CREDENTIALS_KEYS?',
      { error },
    );
    return undefined;
  }
}

async function disable(
  { webhooks, deliveries, events, announce, log }: DeliverDeps,
  { _id, tenantId, mode = 'live', url }: WebhookRow,
  reason: 'gone' | 'failing',
  now: number,
): Promise<void> {
  if (!(await webhooks.disable(tenantId, _id, reason))) return;
  log.warn('A webhook was disabled.', { tenantId, reason });
  const data = { webhook_id: _id, url, reason };
  const cause = `${_id}:${now}`;
  await events.tryPublish([{ tenantId, mode, type: 'webhook.disabled', cause, data, now, except: _id }]);
  await deliveries.failPending(tenantId, _id);
  // Last, because it waits while Redis is unavailable, and this worker may be stopped before Redis is back.
  await announce(tenantId);
}

async function sendDelivery(
  deps: DeliverDeps,
  webhook: WebhookRow,
  { tenantId, eventId }: WebhookDeliveryRow,
): Promise<WebhookReply> {
  const { deliveries, clock, client } = deps;

  const event = await deliveries.findEvent(tenantId, eventId);
  if (event === undefined) return { error: 'The event is older than 30 days and no longer kept.' };
  const now = clock.now();
  const previous = (webhook.previousSecrets ?? []).filter(({ expiresAt }) => expiresAt > now);
  const secrets = readSecrets(deps, webhook._id, [
    webhook.encryptedSecret,
    ...previous.map(({ encrypted }) => encrypted),
  ]);
  if (secrets === undefined) return { error: 'The secret of this webhook cannot be read; rotate it.' };
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Parley-Webhooks/1.0',
    ...signedHeaders(secrets, { id: eventId, body: event.bodyJson, now }),
  };
  return client.send(webhook.url, headers, event.bodyJson);
}

/** Disables a webhook that has failed for too long. */
async function recordHealth(
  deps: DeliverDeps,
  webhook: WebhookRow,
  attempt: DeliveryAttempt & { ok: boolean },
  now: number,
) {
  const { webhooks } = deps;

  const { _id, tenantId, mode = 'live' } = webhook;
  const space = { tenantId, mode };
  const slow = attempt.durationMs > SLOW_MS;
  if (attempt.ok) {
    const changes: WebhookChanges = { failingSince: null, failures: null, slow: slow ? true : null };
    if (isSlow(webhook) || slow) await webhooks.change(space, _id, changes);
    return;
  }
  const failing = { failingSince: webhook.failingSince ?? attempt.at, failures: (webhook.failures ?? 0) + 1 };
  await webhooks.change(space, _id, failing);
  if (attempt.status === GONE) await disable(deps, webhook, 'gone', now);
  else if (isGivenUp(failing, now)) await disable(deps, webhook, 'failing', now);
}

export function createDeliverNext(deps: DeliverDeps): DeliverNext {
  const { webhooks, deliveries, random, clock, telemetry, log } = deps;

  /** The row after a failed attempt: another attempt may have succeeded, or the tenant may have changed it. */
  async function reread(webhook: WebhookRow): Promise<WebhookRow> {
    const { _id, tenantId, mode = 'live' } = webhook;
    return (await webhooks.find({ tenantId, mode }, _id)) ?? webhook;
  }

  async function attemptDelivery(
    webhook: WebhookRow,
    delivery: WebhookDeliveryRow,
  ): Promise<'done' | 'slow' | 'failed'> {
    const at = clock.now();
    const reply = await sendDelivery(deps, webhook, delivery);
    const now = clock.now();
    const { ok, ...attempt } = toAttempt(reply, at, now);
    telemetry.emit('webhook.attempted', ok ? 'succeeded' : 'failed');
    const latest = ok ? webhook : await reread(webhook);
    // If the tenant has changed the URL meanwhile, the old receiver's failure says nothing about the new one.
    const isFormer = latest.url !== webhook.url;
    const isFinal = ok || (attempt.status === GONE && !isFormer);
    const next = isFinal ? undefined : nextAttemptAt(delivery.failed + 1, now, random());
    await deliveries.recordAttempt(delivery, {
      attempt,
      status: ok ? 'succeeded' : next === undefined ? 'failed' : 'pending',
      ...(next === undefined ? {} : { nextAttemptAt: next }),
    });
    if (!isFormer) await recordHealth(deps, latest, { ok, ...attempt }, now);
    if (ok) return attempt.durationMs > SLOW_MS ? 'slow' : 'done';
    const { tenantId, webhookId } = delivery;
    log.debug(`An attempt for webhook ${webhookId} failed (${delivery.failed + 1} of ${ATTEMPTS_MAX}).`, { tenantId });
    return 'failed';
  }

  return async (tenantId, webhookId) => {
    const webhook = await webhooks.find({ tenantId, mode: 'any' }, webhookId);
    if (webhook?.status !== 'active') {
      // An event published while the webhook was being disabled or deleted may still have created a delivery.
      await deliveries.failPending(tenantId, webhookId);
      return 'none';
    }
    const delivery = await deliveries.claim(tenantId, webhookId, clock.now(), LEASE_MS);
    return delivery === undefined ? 'none' : attemptDelivery(webhook, delivery);
  };
}
