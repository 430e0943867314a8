import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

import { WEBHOOK_EVENT_TYPES } from '../../../shared/contracts/webhook-events.ts';
import { chatOf, postChat, requestIdOf } from '../../support/chat.ts';
import { apiOf } from '../../support/tenant-api.ts';
import type { CallApi } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useService } from '../../support/use-service.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';
import type { WebhookReceiver } from '../../support/webhook-receiver.ts';

interface Side {
  key: string;
  api: CallApi;
  receiver: WebhookReceiver;
}

const service = useService({ env: { WEBHOOK_ALLOW_PRIVATE: 'true' } });
let live: Side;
let test: Side;

/** A key whose webhook listens for everything. */
async function sideOf(key: string): Promise<Side> {
  const receiver = await startWebhookReceiver();
  const api = apiOf(service, key);
  expect((await api('post', '/webhooks', { url: receiver.url, events: WEBHOOK_EVENT_TYPES })).status).toBe(201);
  return { key, api, receiver };
}

beforeEach(async () => {
  const tenant = await service.startTenant({ credits: 1_000 });
  const { value } = await makeKey(apiOf(service, tenant.key), { mode: 'test', scopes: ['*'] });
  live = await sideOf(tenant.key);
  test = await sideOf(value);
});
afterEach(() => Promise.all([live.receiver.close(), test.receiver.close()]));

const typesOf = ({ receiver }: Side) => receiver.received.map(({ body }) => body.type).sort();

/** Has each side hear of something last, so that whatever else it was to hear of has come. */
async function untilTold(): Promise<void> {
  for (const { api, receiver } of [live, test]) {
    await api('put', '/entities/last', {});
    await api('delete', '/entities/last');
    await receiver.next('entity.deleted');
  }
}

describe('a webhook', () => {
  it('hears of what keys of its mode do, and of nothing else', async () => {
    const ids = await Promise.all(
      [live, test].map(async ({ key }) => requestIdOf(await postChat(service.app, key, chatOf('Hi')))),
    );
    await postChat(service.app, test.key, chatOf('I will kill you'));
    const batch = { requests: [{ custom_id: 'one', body: chatOf('Hi') }] };
    const { body } = await test.api('post', '/batches', batch);
    await test.receiver.next('batch.completed');
    await live.receiver.next('chat.completed');
    await test.receiver.next('chat.completed', 2);
    await untilTold();

    expect(typesOf(live)).toEqual(['chat.completed', 'entity.deleted']);
    expect(typesOf(test)).toEqual([
      ...['batch.completed', 'chat.completed', 'chat.completed', 'chat.failed', 'entity.deleted', 'moderation.flagged'],
    ]);
    const first = (side: Side) => side.receiver.next('chat.completed').then((one) => one.body.data);
    expect([await first(live), await first(test)]).toMatchObject([
      { mode: 'live', request_id: ids[0] },
      { mode: 'test', request_id: ids[1] },
    ]);
    expect((await test.receiver.next('batch.completed')).body.data).toMatchObject({ batch_id: body.id });
  });

  it('of live keys hears of the account and of every key, one of test keys of test keys alone', async () => {
    const made = await makeKey(live.api, { mode: 'test' });
    await live.api('delete', `/keys/${made.id}`);
    await makeKey(live.api, { scopes: ['chat'] });
    const { tenantId } = (await service.models.keys.findById(made.id).lean()) ?? {};
    await service.admin('post', `/tenants/${String(tenantId)}/credits`, { credits: -1_000, reason: 'spent' });
    await live.receiver.next('credits.depleted');
    await untilTold();

    expect(typesOf(live)).toEqual([
      ...['credits.depleted', 'entity.deleted', 'key.created', 'key.created', 'key.revoked'],
    ]);
    expect(typesOf(test)).toEqual(['entity.deleted', 'key.created', 'key.revoked']);
  });
});
