import Joi from 'joi';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { WebhookChanges, WebhookRow } from '../../../shared/mongo/webhooks/webhook-repository.ts';
import { newWebhookSecret } from '../../../shared/webhooks/sign.ts';
import { defineEndpoint, ok, json, optionalJsonBody } from '../../contract/endpoint.ts';
import { countSchema } from '../../contract/json-schema.ts';
import { contextOf } from '../../http/request-context.ts';
import { findWebhook } from './webhook-settings.ts';
import type { WebhooksDeps } from './webhook-settings.ts';
import { toWebhookResource, WEBHOOK_WITH_SECRET_EXAMPLE, webhookWithSecretSchema } from './webhooks-resource.ts';

const DAY_SECONDS = 86_400;
const GRACE_SECONDS_MAX = 7 * DAY_SECONDS;
/** Each earlier secret adds a signature to every request. */
const PREVIOUS_SECRETS_MAX = 3;

const rotationSchema = Joi.object<{ grace_seconds?: number }, true>({
  grace_seconds: countSchema(0, GRACE_SECONDS_MAX).description(
    'How long the previous secret signs as well, in seconds; a day by default.',
  ),
}).required();

/**
 * The changes of a rotation. All earlier secrets stop signing at the end of the grace; with a grace of 0, at once.
 * Throws `conflict` if too many earlier secrets would still sign.
 */
function rotationOf(row: WebhookRow, encryptedSecret: string, graceMs: number, now: number): WebhookChanges {
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

export const rotateWebhookSecret = defineEndpoint({
  method: 'POST',
  path: '/webhooks/:webhookId/rotate_secret',
  scopes: ['webhooks'],
  tag: 'Webhooks',
  summary: 'Rotate the secret of a webhook',
  description: 'Needs no body. Both secrets sign for `grace_seconds`.',
  body: optionalJsonBody('WebhookSecretRotation', rotationSchema),
  answers: { 200: json('The webhook, with its secret.', webhookWithSecretSchema) },
  examples: {
    an_hour: {
      summary: 'Both sign for an hour',
      body: { grace_seconds: 3_600 },
      status: 200,
      answer: { ...WEBHOOK_WITH_SECRET_EXAMPLE, previous_secret_expires_at: 1_795_258_800 },
    },
  },
  async handle({ res, principal, params, body, actor }, deps: WebhooksDeps) {
    const { grace_seconds: graceSeconds = DAY_SECONDS } = body;
    const { repository, cipher } = deps.webhooks;
    const row = await findWebhook(deps, principal, params.webhookId);
    const now = deps.clock.now();
    const rotatedUnder = contextOf(res).run?.name;
    if (rotatedUnder !== undefined && row.rotatedUnder === rotatedUnder) return ok(toWebhookResource(row, now));
    const secret = newWebhookSecret();
    const changes = rotationOf(row, cipher.encrypt(secret, `webhooks/${row._id}`), graceSeconds * 1000, now);
    if (!(await repository.replaceSecret(row, { ...changes, rotatedUnder }))) {
      throw new ServiceError('conflict', 'The secret of this webhook is being rotated by another request; try again.');
    }
    await deps.events.emit(actor, 'webhook.secret_rotated', row._id, { grace_seconds: graceSeconds });
    return ok({ ...toWebhookResource(await findWebhook(deps, principal, row._id), now), secret });
  },
});
