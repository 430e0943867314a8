import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { WebhookChanges } from '../../../shared/infra/mongo/webhooks/webhook-repository.ts';
import type { WebhookRow } from '../../../shared/infra/mongo/webhooks/webhook-repository.ts';

/** Each adds a signature to every request. */
const PREVIOUS_SECRETS_MAX = 3;

/**
 * What rotating a webhook's secret changes: no earlier secret signs beyond the grace, so a grace of 0 leaves the new
 * one alone. Throws `conflict` when too many earlier ones would still sign.
 */
export function secretRotationOf(
  row: WebhookRow,
  encryptedSecret: string,
  graceMs: number,
  now: number,
): WebhookChanges {
  const end = now + graceMs;
  const previousSecrets = [{ encrypted: row.encryptedSecret, expiresAt: end }, ...(row.previousSecrets ?? [])]
    .map(({ encrypted, expiresAt }) => ({ encrypted, expiresAt: Math.min(expiresAt, end) }))
    .filter(({ expiresAt }) => expiresAt > now);
  if (previousSecrets.length > PREVIOUS_SECRETS_MAX) {
    throw new ServiceError(
      'conflict',
      `${PREVIOUS_SECRETS_MAX} earlier secrets of this webhook still sign; wait for the end of their grace or send \`grace_seconds\` 0.`,
      { param: 'grace_seconds' },
    );
  }
  return { encryptedSecret, previousSecrets };
}
