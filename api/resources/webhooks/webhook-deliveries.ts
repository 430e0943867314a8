import { toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { DELIVERY_KEPT_DAYS } from '../../../shared/webhooks/publish.ts';
import type { WebhookDeliveryRow } from '../../../shared/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookRow } from '../../../shared/mongo/webhooks/webhook-repository.ts';
import { accepted, defineEndpoint, ok, exampleList, json, listQuery } from '../../contract/endpoint.ts';
import { found } from '../../contract/path-parameters.ts';
import { idForNew } from '../../http/request-context.ts';
import { assertActive, findWebhook } from './webhook-settings.ts';
import type { WebhooksDeps } from './webhook-settings.ts';
import { ATTEMPTED_DELIVERY_EXAMPLE, deliveryResource } from './webhooks-resource.ts';

/** Each one goes to somebody else's server, and is retried for more than a day if that fails. */
const SENDS_PER_MINUTE = 10;

const attempted = json('The first attempt is made at once.', deliveryResource.schema, ['Location']);

function acceptDelivery(row: WebhookDeliveryRow) {
  return accepted(deliveryResource.of(row), `/platform/v1/webhooks/${row.webhookId}/deliveries/${row._id}`);
}

async function findDelivery({ webhooks }: WebhooksDeps, { tenantId, _id }: WebhookRow, deliveryId: string) {
  return found(await webhooks.deliveries.find(tenantId, _id, deliveryId), 'deliveryId');
}

export const testWebhook = defineEndpoint({
  method: 'POST',
  path: '/webhooks/:webhookId/test',
  scopes: ['webhooks'],
  tag: 'Webhooks',
  summary: 'Send a ping',
  ownLimit: { perMinute: SENDS_PER_MINUTE, of: 'key' },
  description: `Whatever the webhook has subscribed to; a disabled one is 409. A key may call this ${SENDS_PER_MINUTE} times a minute.`,
  answers: { 202: attempted },
  examples: { ping: { status: 202, answer: deliveryResource.example } },
  async handle({ res, principal, params }, deps: WebhooksDeps) {
    const row = await findWebhook(deps, principal, params.webhookId);
    assertActive(row);
    return acceptDelivery(await deps.webhooks.events.ping(row, idForNew(res, 'evt'), deps.clock.now()));
  },
});

export const listDeliveries = defineEndpoint({
  method: 'GET',
  path: '/webhooks/:webhookId/deliveries',
  scopes: ['webhooks'],
  tag: 'Webhooks',
  summary: 'List deliveries of a webhook',
  description: `Deliveries are kept for ${DELIVERY_KEPT_DAYS} days.`,
  query: listQuery,
  answers: { 200: json('A page of deliveries.', deliveryResource.listSchema) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(ATTEMPTED_DELIVERY_EXAMPLE) } },
  async handle({ principal, params, query }, deps: WebhooksDeps) {
    const { tenantId, _id } = await findWebhook(deps, principal, params.webhookId);
    const rows = await deps.webhooks.deliveries.list(tenantId, _id, query);
    return ok(toListPage(rows, query.limit, deliveryResource.of));
  },
});

export const getDelivery = defineEndpoint({
  method: 'GET',
  path: '/webhooks/:webhookId/deliveries/:deliveryId',
  scopes: ['webhooks'],
  tag: 'Webhooks',
  summary: 'Retrieve a delivery',
  answers: { 200: json('The delivery.', deliveryResource.schema) },
  examples: { one: { status: 200, answer: ATTEMPTED_DELIVERY_EXAMPLE } },
  async handle({ principal, params }, deps: WebhooksDeps) {
    const row = await findWebhook(deps, principal, params.webhookId);
    return ok(deliveryResource.of(await findDelivery(deps, row, params.deliveryId)));
  },
});

export const redeliver = defineEndpoint({
  method: 'POST',
  path: '/webhooks/:webhookId/deliveries/:deliveryId/redeliver',
  scopes: ['webhooks'],
  tag: 'Webhooks',
  summary: 'Redeliver an event',
  ownLimit: { perMinute: SENDS_PER_MINUTE, of: 'key' },
  description: `Succeeded or not; a delivery with an attempt in progress is 409. A key may call this ${SENDS_PER_MINUTE} times a minute.`,
  answers: { 202: attempted },
  examples: { again: { status: 202, answer: deliveryResource.example } },
  async handle({ principal, params }, deps: WebhooksDeps) {
    const { deliveries, queue } = deps.webhooks;
    const row = await findWebhook(deps, principal, params.webhookId);
    const delivery = await findDelivery(deps, row, params.deliveryId);
    assertActive(row);
    if (!(await deliveries.restart(delivery, deps.clock.now()))) {
      throw new ServiceError('conflict', 'This delivery is being attempted right now; look at it again shortly.');
    }
    // If this fails, the sweep finds the delivery.
    const { tenantId, webhookId } = delivery;
    await queue.add('webhooks', { tenantId, webhookId }).catch(() => undefined);
    return acceptDelivery(await findDelivery(deps, row, params.deliveryId));
  },
});
