import Joi from 'joi';

import { codePoints } from '../../../shared/contracts/chat-request.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { isWebhookEventType, WEBHOOK_EVENT_TYPES } from '../../../shared/contracts/webhook-events.ts';
import type { WebhookEventType } from '../../../shared/contracts/webhook-events.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { readWebhookUrl } from '../../../shared/infra/http/webhook-url.ts';
import { countSchema } from '../../admin/tenants/schema.ts';

const URL_CHARACTERS_MAX = 2_048;
const DESCRIPTION_CHARACTERS_MAX = 500;
const DAY_SECONDS = 86_400;
const GRACE_SECONDS_MAX = 7 * DAY_SECONDS;

const fields = {
  url: Joi.string()
    .custom(codePoints(URL_CHARACTERS_MAX))
    .description('Where events are posted to: https, and a host on the public Internet.'),
  events: Joi.array()
    .items(Joi.string())
    .min(1)
    .max(WEBHOOK_EVENT_TYPES.length)
    .unique()
    .description(`Types of events: ${WEBHOOK_EVENT_TYPES.join(', ')}.`),
  description: Joi.string().allow('').custom(codePoints(DESCRIPTION_CHARACTERS_MAX)).description('For people.'),
};

/** `POST /webhooks`. */
export const newWebhookSchema = Joi.object({
  ...fields,
  url: fields.url.required(),
  events: fields.events.required(),
}).required();

/** `PATCH /webhooks/{id}`. */
export const webhookChangesSchema = Joi.object({
  ...fields,
  status: Joi.string()
    .valid('active', 'disabled')
    .description('`active` enables one again that was disabled, by you or because its receiver failed.'),
}).required();

/** `POST /webhooks/{id}/rotate_secret`. */
export const secretRotationSchema = Joi.object({
  grace_seconds: countSchema(0, GRACE_SECONDS_MAX).description(
    'How long the secret until now signs as well; a day by default.',
  ),
}).required();

interface WebhookFields {
  url: string;
  events: WebhookEventType[];
  description?: string;
}

type ChangesBody = Partial<WebhookFields> & { status?: 'active' | 'disabled' };

function assertKnownEvents(events: readonly string[]): void {
  const unknown = events.filter((type) => !isWebhookEventType(type));
  if (unknown.length === 0) return;
  const named = unknown.map((type) => `"${type.slice(0, 64)}"`).join(', ');
  throw new ServiceError(
    'invalid_request',
    `\`events\` names types that do not exist: ${named}. There are: ${WEBHOOK_EVENT_TYPES.join(', ')}.`,
    { param: 'events' },
  );
}

function assertUrl(text: string, allowPrivate: boolean): void {
  const read = readWebhookUrl(text, allowPrivate);
  if (!read.ok) throw new ServiceError('invalid_request', `\`url\` ${read.fault}.`, { param: 'url' });
}

/** Throws `invalid_request`. */
export function parseNewWebhook(input: unknown, allowPrivate: boolean): WebhookFields {
  checkAgainst(newWebhookSchema, input);
  // The schema has just checked every field of this shape; the types' names are looked at here.
  const body = input as WebhookFields;
  assertKnownEvents(body.events);
  assertUrl(body.url, allowPrivate);
  return body;
}

/** Throws `invalid_request`. */
export function parseWebhookChanges(input: unknown, allowPrivate: boolean): ChangesBody {
  checkAgainst(webhookChangesSchema, input);
  // As above.
  const body = input as ChangesBody;
  if (body.events !== undefined) assertKnownEvents(body.events);
  if (body.url !== undefined) assertUrl(body.url, allowPrivate);
  return body;
}

/** Seconds of grace. Throws `invalid_request`. */
export function parseSecretRotation(input: unknown): number {
  checkAgainst(secretRotationSchema, input);
  // The schema has just checked the field.
  const { grace_seconds: graceSeconds = DAY_SECONDS } = input as { grace_seconds?: number };
  return graceSeconds;
}
