import type { Request, Response, Router } from 'express';

import { parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { CredentialCipher } from '../../../shared/infra/mongo/credentials.ts';
import type { WebhookDeliveryRepository } from '../../../shared/infra/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookChanges, WebhookRepository } from '../../../shared/infra/mongo/webhooks/webhook-repository.ts';
import type { WebhookDeliveryRow } from '../../../shared/infra/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookRow } from '../../../shared/infra/mongo/webhooks/webhook-repository.ts';
import type { WebhookQueue } from '../../../shared/infra/queue/webhook-queue.ts';
import type { AccessFlags } from '../../../shared/infra/redis/tenants/access-flags.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { EventSink } from '../../../shared/webhooks/event-sink.ts';
import { newWebhookSecret } from '../../../shared/webhooks/sign.ts';
import type { AuditTrail } from '../audit-log/audit-trail.ts';
import { contextOf, createdBefore, idForNew, principalOf } from '../../http/request-context.ts';
import type { ServeEndpoints } from '../../http/serve-endpoints.ts';
import { pathId } from '../../contract/path-id.ts';
import { toDeliveryResource, toWebhookResource } from './resource.ts';
import { secretRotationOf } from './rotate-secret.ts';
import { parseNewWebhook, parseSecretRotation, parseWebhookChanges } from './schema.ts';

/** What webhooks need of the ingress, made in one place (api/resources/webhooks/open-webhooks.ts). */
export interface WebhookParts {
  repository: WebhookRepository;
  deliveries: WebhookDeliveryRepository;
  queue: Pick<WebhookQueue, 'add'>;
  events: Pick<EventSink, 'ping'>;
  cipher: CredentialCipher;
  allowPrivate: boolean;
}

export interface WebhooksRouteDeps {
  serve: ServeEndpoints;
  webhooks: WebhookParts;
  accessFlags: Pick<AccessFlags, 'announce'>;
  auditTrail: AuditTrail;
  clock: Clock;
}

function found<T>(value: T | undefined, noun: 'webhook' | 'delivery'): T {
  if (value === undefined) throw new ServiceError('not_found', `There is no ${noun} with this id.`);
  return value;
}

function assertActive({ status }: WebhookRow): void {
  if (status === 'active') return;
  throw new ServiceError('conflict', 'This webhook is disabled; set its `status` to active first.');
}

/** What a change sets; enabling a webhook gives its receiver a new start. */
function toChanges({ status, ...fields }: ReturnType<typeof parseWebhookChanges>, before: WebhookRow): WebhookChanges {
  if (status === undefined || status === before.status) return fields;
  return status === 'disabled'
    ? { ...fields, status, disabledReason: 'request' }
    : { ...fields, status, disabledReason: null, failingSince: null, failures: null, slow: null };
}

/** `/webhooks` (docs/spec/contract.md section 6). */
export function createWebhooksRoute({ serve, webhooks, accessFlags, auditTrail, clock }: WebhooksRouteDeps): Router {
  const { repository, deliveries, queue, events, cipher, allowPrivate } = webhooks;

  async function find(req: Request, res: Response): Promise<WebhookRow> {
    const webhookId = pathId(req, 'webhookId', 'whk');
    return found(await repository.find(principalOf(res).tenantId, webhookId), 'webhook');
  }

  async function findDelivery(req: Request, { tenantId, _id }: WebhookRow): Promise<WebhookDeliveryRow> {
    return found(await deliveries.find(tenantId, _id, pathId(req, 'deliveryId', 'dlv')), 'delivery');
  }

  function acceptDelivery(res: Response, row: WebhookDeliveryRow): void {
    res.setHeader('Location', `/platform/v1/webhooks/${row.webhookId}/deliveries/${row._id}`);
    res.status(202).json(toDeliveryResource(row));
  }

  return serve({
    createWebhook: async (req, res) => {
      const { tenantId } = principalOf(res);
      const { url, events: types, description = '' } = parseNewWebhook(req.body, allowPrivate);
      const now = clock.now();
      const webhookId = idForNew(res, 'whk');
      const details = { url, events: types };
      const before = await createdBefore(res, () => repository.find(tenantId, webhookId));
      if (before !== undefined) {
        await accessFlags.announce(tenantId);
        await auditTrail.byKey(res, { action: 'webhook.created', target: webhookId, details, isOnce: true });
        res.status(201).json(toWebhookResource(before, now));
        return;
      }
      const secret = newWebhookSecret();
      const row: WebhookRow = {
        _id: webhookId,
        tenantId,
        url,
        events: types,
        description,
        status: 'active',
        encryptedSecret: cipher.encrypt(secret),
        createdAt: now,
      };
      await repository.insert(row);
      await accessFlags.announce(tenantId);
      await auditTrail.byKey(res, { action: 'webhook.created', target: webhookId, details, isOnce: true });
      res.status(201).json({ ...toWebhookResource(row, now), secret });
    },

    listWebhooks: async (req, res) => {
      const query = parseListQuery(req.query);
      const rows = await repository.list(principalOf(res).tenantId, query);
      const now = clock.now();
      res.json(toListPage(rows, query.limit, (row) => toWebhookResource(row, now)));
    },

    getWebhook: async (req, res) => {
      res.json(toWebhookResource(await find(req, res), clock.now()));
    },

    updateWebhook: async (req, res) => {
      const body = parseWebhookChanges(req.body, allowPrivate);
      const before = await find(req, res);
      const { tenantId, _id } = before;
      const row = found(await repository.change(tenantId, _id, toChanges(body, before)), 'webhook');
      await accessFlags.announce(tenantId);
      if (body.status === 'disabled') await deliveries.giveUp(tenantId, _id);
      await auditTrail.byKey(res, { action: 'webhook.updated', target: _id, details: { fields: Object.keys(body) } });
      res.json(toWebhookResource(row, clock.now()));
    },

    deleteWebhook: async (req, res) => {
      const webhookId = pathId(req, 'webhookId', 'whk');
      const { tenantId } = principalOf(res);
      found((await repository.remove(tenantId, webhookId)) ? webhookId : undefined, 'webhook');
      await accessFlags.announce(tenantId);
      await auditTrail.byKey(res, { action: 'webhook.deleted', target: webhookId });
      res.json({ id: webhookId, object: 'webhook', deleted: true });
    },

    rotateWebhookSecret: async (req, res) => {
      const graceSeconds = parseSecretRotation(req.body);
      const row = await find(req, res);
      const now = clock.now();
      const rotatedUnder = contextOf(res).run?.name;
      if (rotatedUnder !== undefined && row.rotatedUnder === rotatedUnder) {
        res.json(toWebhookResource(row, now));
        return;
      }
      const secret = newWebhookSecret();
      const changes = secretRotationOf(row, cipher.encrypt(secret), graceSeconds * 1000, now);
      if (!(await repository.replaceSecret(row, { ...changes, rotatedUnder }))) {
        throw new ServiceError(
          'conflict',
          'The secret of this webhook is being rotated by another request; try again.',
        );
      }
      const details = { grace_seconds: graceSeconds };
      await auditTrail.byKey(res, { action: 'webhook.secret_rotated', target: row._id, details });
      res.json({ ...toWebhookResource(await find(req, res), now), secret });
    },

    testWebhook: async (req, res) => {
      const row = await find(req, res);
      assertActive(row);
      acceptDelivery(res, await events.ping(row, clock.now()));
    },

    listDeliveries: async (req, res) => {
      const query = parseListQuery(req.query);
      const { tenantId, _id } = await find(req, res);
      res.json(toListPage(await deliveries.list(tenantId, _id, query), query.limit, toDeliveryResource));
    },

    getDelivery: async (req, res) => {
      res.json(toDeliveryResource(await findDelivery(req, await find(req, res))));
    },

    redeliver: async (req, res) => {
      const row = await find(req, res);
      const delivery = await findDelivery(req, row);
      assertActive(row);
      if (!(await deliveries.restart(delivery, clock.now()))) {
        throw new ServiceError('conflict', 'This delivery is being attempted right now; look at it again shortly.');
      }
      // The sweep finds it otherwise.
      const { tenantId, webhookId } = delivery;
      await queue.add('webhooks', { tenantId, webhookId }).catch(() => undefined);
      acceptDelivery(res, await findDelivery(req, row));
    },
  });
}
