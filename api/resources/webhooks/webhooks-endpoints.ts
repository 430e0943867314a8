import Joi from 'joi';

import { toListPage } from '../../../shared/contracts/list-page.ts';
import { WEBHOOKS_MAX } from '../../../shared/mongo/webhooks/webhook-repository.ts';
import type { WebhookChanges, WebhookRow } from '../../../shared/mongo/webhooks/webhook-repository.ts';
import { spaceFields } from '../../../shared/mongo/collection.ts';
import { newWebhookSecret } from '../../../shared/webhooks/sign.ts';
import {
  created,
  defineEndpoint,
  ok,
  exampleList,
  json,
  jsonBody,
  listQuery,
  optionalJsonBody,
} from '../../contract/endpoint.ts';
import { found } from '../../contract/path-parameters.ts';
import { countSchema } from '../../contract/json-schema.ts';
import { createdBefore, idForNew, contextOf } from '../../http/request-context.ts';
import { getDelivery, listDeliveries, redeliver, testWebhook } from './webhook-deliveries.ts';
import {
  assertReceiverUrl,
  knownEvents,
  newWebhookSchema,
  webhookChangesSchema,
  findWebhook,
} from './webhook-settings.ts';
import type { WebhookChangesBody, WebhooksDeps } from './webhook-settings.ts';
import {
  deletedWebhookSchema,
  webhookResource,
  WEBHOOK_WITH_SECRET_EXAMPLE,
  webhookWithSecretSchema,
} from './webhooks-resource.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';

const DAY_SECONDS = 86_400;
const GRACE_SECONDS_MAX = 7 * DAY_SECONDS;
/** Each earlier secret adds a signature to every request. */
const PREVIOUS_SECRETS_MAX = 3;

const rotationSchema = Joi.object<{ grace_seconds?: number }, true>({
  grace_seconds: countSchema(0, GRACE_SECONDS_MAX).description(
    'How long the previous secret signs as well, in seconds; a day by default.',
  ),
}).required();

/** All earlier secrets stop signing at the end of the grace. Throws `conflict` if too many would still sign. */
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

const rotateWebhookSecret = defineEndpoint({
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
    if (rotatedUnder !== undefined && row.rotatedUnder === rotatedUnder) return ok(webhookResource.of(row, now));
    const secret = newWebhookSecret();
    const changes = rotationOf(row, cipher.encrypt(secret, `webhooks/${row._id}`), graceSeconds * 1000, now);
    if (!(await repository.replaceSecret(row, { ...changes, rotatedUnder }))) {
      throw new ServiceError('conflict', 'The secret of this webhook is being rotated by another request; try again.');
    }
    await deps.events.emit(actor, 'webhook.secret_rotated', row._id, { grace_seconds: graceSeconds });
    return ok({ ...webhookResource.of(await findWebhook(deps, principal, row._id), now), secret });
  },
});

/** Throws `invalid_request`. */
function settingsOf({ url, events, description }: WebhookChangesBody, allowPrivate: boolean): WebhookChanges {
  const types = events === undefined ? undefined : knownEvents(events);
  if (url !== undefined) assertReceiverUrl(url, allowPrivate);
  return {
    ...(url === undefined ? {} : { url }),
    ...(types === undefined ? {} : { events: types }),
    ...(description === undefined ? {} : { description }),
  };
}

/** The health of a webhook about whose receiver nothing is known. */
const WELL = { failingSince: null, failures: null, slow: null } as const;

function statusOf({ status }: WebhookChangesBody, before: WebhookRow): WebhookChanges {
  if (status === undefined || status === before.status) return {};
  return status === 'disabled' ? { status, disabledReason: 'request' } : { status, disabledReason: null, ...WELL };
}

/** Enabling the webhook or changing its URL clears its failures. */
function changesOf(body: WebhookChangesBody, before: WebhookRow, allowPrivate: boolean): WebhookChanges {
  const isMoved = body.url !== undefined && body.url !== before.url;
  return { ...settingsOf(body, allowPrivate), ...(isMoved ? WELL : {}), ...statusOf(body, before) };
}

const createWebhook = defineEndpoint({
  method: 'POST',
  path: '/webhooks',
  scopes: ['webhooks'],
  tag: 'Webhooks',
  summary: 'Create a webhook',
  description: `A tenant has at most ${WEBHOOKS_MAX} live and ${WEBHOOKS_MAX} test webhooks (409). A replayed answer omits \`secret\`.`,
  body: jsonBody('NewWebhook', newWebhookSchema),
  answers: { 201: json('The webhook, with its secret.', webhookWithSecretSchema) },
  examples: {
    on_call: {
      body: {
        url: webhookResource.example['url'],
        events: webhookResource.example['events'],
        description: webhookResource.example['description'],
      },
      status: 201,
      answer: WEBHOOK_WITH_SECRET_EXAMPLE,
    },
  },
  async handle({ res, principal, body, actor }, { webhooks, accessFlags, events, clock }: WebhooksDeps) {
    const { tenantId } = principal;
    const { url, description = '' } = body;
    const types = knownEvents(body.events);
    assertReceiverUrl(url, webhooks.allowPrivate);
    const now = clock.now();
    const webhookId = idForNew(res, 'whk');
    const before = await createdBefore(res, () => webhooks.repository.find(principal, webhookId));
    const secret = newWebhookSecret();
    const row: WebhookRow = before ?? {
      _id: webhookId,
      ...spaceFields(principal),
      url,
      events: types,
      description,
      status: 'active',
      encryptedSecret: webhooks.cipher.encrypt(secret, `webhooks/${webhookId}`),
      createdAt: now,
    };
    if (before === undefined) await webhooks.repository.insert(row);
    await accessFlags.announce(tenantId);
    await events.emit(actor, 'webhook.created', webhookId, { url, events: types });
    // An earlier run's secret is stored encrypted and shown only once.
    return created({ ...webhookResource.of(row, now), ...(before === undefined ? { secret } : {}) });
  },
});

const listWebhooks = defineEndpoint({
  method: 'GET',
  path: '/webhooks',
  scopes: ['webhooks'],
  tag: 'Webhooks',
  summary: 'List webhooks',
  query: listQuery,
  answers: { 200: json('A page of webhooks.', webhookResource.listSchema) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(webhookResource.example) } },
  async handle({ principal, query }, { webhooks, clock }: WebhooksDeps) {
    const rows = await webhooks.repository.list(principal, query);
    const now = clock.now();
    return ok(toListPage(rows, query.limit, (row) => webhookResource.of(row, now)));
  },
});

const getWebhook = defineEndpoint({
  method: 'GET',
  path: '/webhooks/:webhookId',
  scopes: ['webhooks'],
  tag: 'Webhooks',
  summary: 'Retrieve a webhook',
  answers: { 200: json('The webhook.', webhookResource.schema) },
  examples: { one: { status: 200, answer: webhookResource.example } },
  async handle({ principal, params }, deps: WebhooksDeps) {
    return ok(webhookResource.of(await findWebhook(deps, principal, params.webhookId), deps.clock.now()));
  },
});

const updateWebhook = defineEndpoint({
  method: 'PATCH',
  path: '/webhooks/:webhookId',
  scopes: ['webhooks'],
  tag: 'Webhooks',
  summary: 'Update a webhook',
  description: 'Disabling a webhook gives up the deliveries that wait for it.',
  body: jsonBody('WebhookChanges', webhookChangesSchema),
  answers: { 200: json('The updated webhook.', webhookResource.schema) },
  examples: {
    disable: {
      summary: 'Disable',
      body: { status: 'disabled' },
      status: 200,
      answer: { ...webhookResource.example, status: 'disabled', disabled_reason: 'request' },
    },
    events: {
      summary: 'Other events',
      body: { events: webhookResource.example['events'] },
      status: 200,
      answer: webhookResource.example,
    },
  },
  async handle({ principal, params, body, actor }, deps: WebhooksDeps) {
    const { webhooks, accessFlags, events, clock } = deps;
    const before = await findWebhook(deps, principal, params.webhookId);
    const { tenantId, _id } = before;
    const changes = changesOf(body, before, webhooks.allowPrivate);
    const changed = await webhooks.repository.change(principal, _id, changes);
    const row = found(changed, 'webhookId');
    await accessFlags.announce(tenantId);
    await events.emit(actor, 'webhook.updated', _id, { fields: Object.keys(body) });
    if (body.status === 'disabled') await webhooks.deliveries.failPending(tenantId, _id);
    return ok(webhookResource.of(row, clock.now()));
  },
});

const deleteWebhook = defineEndpoint({
  method: 'DELETE',
  path: '/webhooks/:webhookId',
  scopes: ['webhooks'],
  tag: 'Webhooks',
  summary: 'Delete a webhook',
  answers: { 200: json('The webhook is deleted.', deletedWebhookSchema) },
  examples: { one: { status: 200, answer: { id: webhookResource.example.id, object: 'webhook', deleted: true } } },
  async handle({ principal, params, actor }, { webhooks, accessFlags, events }: WebhooksDeps) {
    const { tenantId } = principal;
    const { webhookId } = params;
    found((await webhooks.repository.remove(principal, webhookId)) || undefined, 'webhookId');
    await accessFlags.announce(tenantId);
    await events.emit(actor, 'webhook.deleted', webhookId);
    return ok({ id: webhookId, object: 'webhook', deleted: true });
  },
});

/** The tenant's webhooks and their deliveries (docs/spec.md#webhooks). */
export const webhooksEndpoints = {
  createWebhook,
  listWebhooks,
  getWebhook,
  updateWebhook,
  deleteWebhook,
  rotateWebhookSecret,
  testWebhook,
  listDeliveries,
  getDelivery,
  redeliver,
};
