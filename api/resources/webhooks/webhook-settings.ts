import Joi from 'joi';

import { storedText } from '../../../shared/contracts/chat-request.ts';
import { WEBHOOK_EVENT_TYPES, isWebhookEventType } from '../../../shared/contracts/webhook-events.ts';
import type { WebhookEventType } from '../../../shared/contracts/webhook-events.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { readWebhookUrl } from '../../../shared/http/public-address.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { CredentialCipher } from '../../../shared/mongo/credentials.ts';
import type { WebhookDeliveryRepository } from '../../../shared/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookRepository, WebhookRow } from '../../../shared/mongo/webhooks/webhook-repository.ts';
import type { WebhookQueue } from '../../../shared/queue/queues.ts';
import type { AccessFlags } from '../../../shared/redis/stores/access-flags.ts';
import type { EventSink } from '../../../shared/webhooks/publish.ts';
import { found } from '../../contract/path-parameters.ts';
import type { TenantEvents } from '../../contract/tenant-events.ts';

const URL_CHARACTERS_MAX = 2_048;
const DESCRIPTION_CHARACTERS_MAX = 500;

const fields = {
  url: storedText(URL_CHARACTERS_MAX).description(
    'Where events are posted to: https, and a host on the public Internet.',
  ),
  events: Joi.array()
    .items(Joi.string())
    .min(1)
    .max(WEBHOOK_EVENT_TYPES.length)
    .unique()
    .description(`Types of events: ${WEBHOOK_EVENT_TYPES.join(', ')}.`),
  description: storedText(DESCRIPTION_CHARACTERS_MAX).allow('').description('For people.'),
};

/** `knownEvents` checks whether the types exist, because its message can list them. */
interface NewWebhookBody {
  url: string;
  events: string[];
  description?: string;
}

export const newWebhookSchema = Joi.object<NewWebhookBody, true>({
  ...fields,
  url: fields.url.required(),
  events: fields.events.required(),
}).required();

export interface WebhookChangesBody extends Partial<NewWebhookBody> {
  status?: 'active' | 'disabled';
}

export const webhookChangesSchema = Joi.object<WebhookChangesBody, true>({
  ...fields,
  status: Joi.string()
    .valid('active', 'disabled')
    .description('`active` enables a webhook again that you or the service disabled.'),
}).required();

/** Throws `invalid_request`. */
export function knownEvents(events: readonly string[]): WebhookEventType[] {
  const unknown = events.filter((type) => !isWebhookEventType(type));
  if (unknown.length === 0) return events.filter((type) => isWebhookEventType(type));
  const named = unknown.map((type) => `"${type.slice(0, 64)}"`).join(', ');
  throw new ServiceError(
    'invalid_request',
    `\`events\` names types that do not exist: ${named}. There are: ${WEBHOOK_EVENT_TYPES.join(', ')}.`,
    { param: 'events' },
  );
}

/** Throws `invalid_request`. */
export function assertReceiverUrl(text: string, allowPrivate: boolean): void {
  const read = readWebhookUrl(text, allowPrivate);
  if (read.ok) return;
  const advice = readWebhookUrl(text, true).ok
    ? '; for development, an administrator may allow private addresses and plain HTTP with WEBHOOK_ALLOW_PRIVATE=true'
    : '';
  throw new ServiceError('invalid_request', `\`url\` ${read.fault}${advice}.`, { param: 'url' });
}

interface WebhookParts {
  repository: WebhookRepository;
  deliveries: WebhookDeliveryRepository;
  queue: WebhookQueue;
  events: EventSink;
  cipher: CredentialCipher;
  allowPrivate: boolean;
}

export interface WebhooksDeps {
  webhooks: WebhookParts;
  accessFlags: AccessFlags;
  events: TenantEvents;
  clock: Clock;
}

/** Throws `not_found`. */
export async function findWebhook(deps: WebhooksDeps, principal: Principal, webhookId: string): Promise<WebhookRow> {
  const { webhooks } = deps;
  return found(await webhooks.repository.find(principal, webhookId), 'webhookId');
}

/** Throws `conflict`. */
export function assertActive({ status }: WebhookRow): void {
  if (status === 'active') return;
  throw new ServiceError('conflict', 'This webhook is disabled; set its `status` to active first.');
}
