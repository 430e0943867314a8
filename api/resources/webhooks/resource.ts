import type { WebhookDeliveryRow } from '../../../shared/infra/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookRow } from '../../../shared/infra/mongo/webhooks/webhook-repository.ts';
import { toSeconds, toSecondsOrNull } from '../../contract/unix-seconds.ts';

export function toWebhookResource(row: WebhookRow, now: number) {
  const ends = (row.previousSecrets ?? []).map(({ expiresAt }) => expiresAt).filter((end) => end > now);
  return {
    id: row._id,
    object: 'webhook',
    created_at: toSeconds(row.createdAt),
    url: row.url,
    events: row.events,
    description: row.description,
    status: row.status,
    disabled_reason: row.disabledReason ?? null,
    failing_since: toSecondsOrNull(row.failingSince),
    previous_secret_expires_at: ends.length === 0 ? null : toSeconds(Math.max(...ends)),
  };
}

/** One event for one webhook, with its latest attempts, oldest first. */
export function toDeliveryResource(row: WebhookDeliveryRow) {
  return {
    id: row._id,
    object: 'webhook.delivery',
    created_at: toSeconds(row.createdAt),
    webhook_id: row.webhookId,
    event_id: row.eventId,
    event_type: row.type,
    status: row.status,
    next_attempt_at: toSecondsOrNull(row.nextAttemptAt),
    attempts: row.attempts.map(({ at, durationMs, status, error }) => ({
      created_at: toSeconds(at),
      duration_ms: durationMs,
      status_code: status ?? null,
      error: error ?? null,
    })),
  };
}
