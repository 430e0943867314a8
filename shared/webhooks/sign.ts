import { randomBytes } from 'node:crypto';

import { Webhook } from 'standardwebhooks';

const SECRET_BYTES = 32;

/** The form is that of Standard Webhooks. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}

/**
 * The headers of Standard Webhooks 1.0: one signature for each secret, parted by spaces, so a receiver verifies with
 * whichever it has. The id is the event's, so a receiver recognises one it was sent before.
 */
export function signedHeaders(
  secrets: readonly string[],
  { id, body, now }: { id: string; body: string; now: number },
): Record<string, string> {
  const signatures = secrets.map((secret) => new Webhook(secret).sign(id, new Date(now), body));
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now / 1000)),
    'webhook-signature': signatures.join(' '),
  };
}
