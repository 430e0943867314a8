import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import request from 'supertest';

import { buy } from '../../support/billing.ts';
import { chatOf, postChat, requestIdOf } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import type { TestTenant } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import type { CallApi } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useService } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';
import type { ReceivedWebhook, WebhookReceiver } from '../../support/webhook-receiver.ts';
let receiver: WebhookReceiver;
let tenant: TestTenant;
let api: CallApi;
const service = useService({ env: { WEBHOOK_ALLOW_PRIVATE: 'true', PAYMENTS: 'test' } });
beforeEach(async () => {
  receiver = await startWebhookReceiver();
  tenant = await service.startTenant();
  api = apiOf(service, tenant.key);
});
afterEach(() => receiver.close());

async function subscribe(events: string[], url = receiver.url): Promise<{ id: string; secret: string }> {
  const { body } = await api('post', '/webhooks', { url, events });
  return body as { id: string; secret: string };
}

const verify = (secret: string, { text, headers }: ReceivedWebhook) =>
  new Webhook(secret).verify(text, headers as Record<string, string>);

describe('events', () => {
  it('of keys and entities are told when they happen', async () => {
    const { secret } = await subscribe(['key.created', 'key.revoked', 'entity.deleted']);

    const made = await makeKey(api, { mode: 'test', scopes: ['chat'] });
    await api('delete', `/keys/${made.id}`);
    await api('delete', `/keys/${made.id}`);
    await api('put', '/entities/pupil', {});
    await api('delete', '/entities/pupil');

    const created = await receiver.next('key.created');
    expect(created.body.data).toEqual({ key_id: made.id, mode: 'test', scopes: ['chat'] });
    expect((await receiver.next('key.revoked')).body.data).toEqual({ key_id: made.id });
    expect((await receiver.next('entity.deleted')).body.data).toEqual({ entity_id: 'pupil' });
    for (const one of receiver.received) expect(verify(secret, one)).toBeDefined();
    expect(await service.models.webhookEvents.countDocuments({ tenantId: tenant.tenantId })).toBe(3);
  });

  it('of a completed chat hold its usage and no word of it', async () => {
    await subscribe(['chat.completed', 'chat.failed']);

    const answer = await postChat(service.app, tenant.key, { ...chatOf('Xylophone?'), entity_id: 'pupil' });

    const { body, text } = await receiver.next('chat.completed');
    const { usage } = answer.body as { usage: object };
    expect(body.data).toEqual({
      request_id: requestIdOf(answer),
      key_id: tenant.keyId,
      mode: 'live',
      model: 'mobius',
      endpoint: 'chat',
      entity_id: 'pupil',
      finish_reason: 'stop',
      usage,
      credits: (usage as { total_tokens: number }).total_tokens,
    });
    expect(text).not.toContain('Xylophone');
    expect(text).not.toContain(answer.body.choices[0].message.content);
    expect(receiver.received).toHaveLength(1);
  });

  it('of a chat that moderation refused are told though nothing is booked', async () => {
    await subscribe(['chat.completed', 'chat.failed', 'moderation.flagged']);

    const answer = await postChat(service.app, tenant.key, chatOf('I will kill you'));

    expect(refusalOf(answer).code).toBe('content_policy_violation');
    const failed = await receiver.next('chat.failed');
    expect(failed.body.data).toMatchObject({ finish_reason: 'error', error_code: 'content_policy_violation' });
    const flagged = await receiver.next('moderation.flagged');
    expect(flagged.body.data).toMatchObject({
      request_id: failed.body.data['request_id'],
      side: 'input',
      categories: expect.arrayContaining([expect.any(String)]),
    });
    expect(flagged.text).not.toContain('kill you');
  });

  it('of credits are told once after a grant, however often the threshold is seen', async () => {
    const poor = await service.startTenant({ credits: 1_000_000 });
    api = apiOf(service, poor.key);
    await subscribe(['credits.low', 'credits.depleted']);
    await service.admin('post', `/tenants/${poor.tenantId}/credits`, { credits: -950_000, reason: 'test' });
    expect((await receiver.next('credits.low')).body.data).toEqual({
      balance: 50_000,
      balance_after_last_top_up: 1_000_000,
    });
    await service.admin('post', `/tenants/${poor.tenantId}/credits`, { credits: -1, reason: 'test' });
    await service.admin('post', `/tenants/${poor.tenantId}/credits`, { credits: -49_999, reason: 'test' });
    expect((await receiver.next('credits.depleted')).body.data).toEqual({ balance: 0 });
    await service.admin('post', `/tenants/${poor.tenantId}/credits`, { credits: 10, reason: 'test' });
    await service.admin('post', `/tenants/${poor.tenantId}/credits`, { credits: -9.5, reason: 'test' });
    await receiver.next('credits.low', 2);

    expect(receiver.received.map(({ body }) => body.type)).toEqual(['credits.low', 'credits.depleted', 'credits.low']);
  });

  it('of a purchase are told, and it is what low credits are measured by from then on', async () => {
    tenant = await service.startTenant({ credits: 0 });
    api = apiOf(service, tenant.key);
    await subscribe(['credits.purchased', 'credits.low']);
    const { body } = await buy(service, tenant, { credits: 2_000_000 });
    const pay = () =>
      request(service.app)
        .post(new URL(String(body.url)).pathname)
        .type('form')
        .send({ action: 'pay' });

    await pay();
    await pay();
    await service.admin('post', `/tenants/${tenant.tenantId}/credits`, { credits: -1_900_000, reason: 'test' });

    expect((await receiver.next('credits.low')).body.data).toEqual({
      balance: 100_000,
      balance_after_last_top_up: 2_000_000,
    });
    expect((await receiver.next('credits.purchased')).body.data).toEqual({
      purchase_id: expect.stringMatching(/^pur_/),
      credits: 2_000_000,
    });
    expect(await service.models.webhookEvents.countDocuments({ tenantId: tenant.tenantId })).toBe(2);
  });

  it('of a budget are told when what is settled passes a threshold', async () => {
    const small = await service.startTenant({ tenant: { monthly_token_budget: 1_000_000 } });
    api = apiOf(service, small.key);
    await subscribe(['budget.threshold_reached', 'budget.exceeded']);
    await postChat(service.app, small.key, chatOf('Hi'));
    await waitFor(async () => {
      const account = await service.models.accounts.findById(small.tenantId).lean();
      return Object.keys(account?.tokensByMonth ?? {}).length > 0 ? account : undefined;
    }, 'the chat to be settled');
    expect(receiver.received).toEqual([]);

    await service.admin('patch', `/tenants/${small.tenantId}`, { monthly_token_budget: 1 });
    await service.admin('post', `/tenants/${small.tenantId}/credits`, { credits: -1, reason: 'test' });

    expect((await receiver.next('budget.exceeded')).body.data).toMatchObject({ limit: 1, used: expect.any(Number) });
  });

  it('are not noted for a tenant that has not asked for them', async () => {
    await subscribe(['key.revoked']);
    const { id } = await subscribe(['key.created']);
    await api('patch', `/webhooks/${id}`, { status: 'disabled' });

    await makeKey(api, {});
    await postChat(service.app, tenant.key, chatOf('Hi'));
    await waitFor(() => service.models.ledger.findOne({ tenantId: tenant.tenantId, type: 'usage' }).lean(), 'settled');

    expect(await service.models.webhookEvents.countDocuments({ tenantId: tenant.tenantId })).toBe(0);
    expect(await service.models.webhookDeliveries.countDocuments({ tenantId: tenant.tenantId })).toBe(0);
  });

  it('are told that a key is about to expire, once for each warning', async () => {
    await subscribe(['key.expiring']);
    const expiring = await makeKey(api, { name: 'CI', expires_in_seconds: 6 * 86_400 });
    await service.redis.del(service.keyspace.shard(0).lease('expiring-keys'));

    const lateWorker = await service.startWorker();
    const { body } = await receiver.next('key.expiring');

    expect(body.data).toMatchObject({ key_id: expiring.id, name: 'CI', days_left: 7 });
    await lateWorker.close();
  });
});
