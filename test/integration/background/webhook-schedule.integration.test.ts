import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import type { WebhookEventType } from '../../../shared/contracts/webhook-events.ts';
import type { WebhookReply } from '../../../shared/http/webhook-client.ts';
import { createCredentialCipher } from '../../../shared/mongo/credentials.ts';
import { createModels, ensureIndexes } from '../../../shared/mongo/administration/catalogue.ts';
import type { Models } from '../../../shared/mongo/administration/catalogue.ts';
import { createWebhookDeliveryRepository } from '../../../shared/mongo/webhooks/webhook-delivery-repository.ts';
import type { WebhookDeliveryRepository } from '../../../shared/mongo/webhooks/webhook-delivery-repository.ts';
import { createWebhookRepository } from '../../../shared/mongo/webhooks/webhook-repository.ts';
import type { WebhookRepository, WebhookRow } from '../../../shared/mongo/webhooks/webhook-repository.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { createEventSink, createSubscriptions } from '../../../shared/webhooks/publish.ts';
import type { EventSink, Subscriptions } from '../../../shared/webhooks/publish.ts';
import { newWebhookSecret } from '../../../shared/webhooks/sign.ts';
import { createDeliverNext } from '../../../workers/webhooks/deliver.ts';
import type { DeliverNext } from '../../../workers/webhooks/deliver.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const START = 1_800_000_000_000;
const HOUR = 3_600_000;
const cipher = createCredentialCipher(Buffer.alloc(32, 1));

let models: Models;
let webhooks: WebhookRepository;
let deliveries: WebhookDeliveryRepository;
let subscriptions: Subscriptions;
let events: EventSink;
let deliverNext: DeliverNext;
let now: number;
let sent: number[];
let reply: WebhookReply;
let whileSending: () => unknown;
let tenantId: string;

const mongo = useStarted('mongo', () => openTestMongo(uniqueName('whk-')));
beforeAll(async () => {
  models = createModels(mongo);
  await ensureIndexes(mongo);
  webhooks = createWebhookRepository(mongo);
  deliveries = createWebhookDeliveryRepository(mongo);
  const clock = { now: () => now };
  const log = createRecordingLog();
  subscriptions = createSubscriptions({ webhooks, clock });
  events = createEventSink({ subscriptions, deliveries, log, queue: { add: () => Promise.resolve() } });
  deliverNext = createDeliverNext({
    webhooks,
    deliveries,
    events,
    cipher,
    clock,
    log,
    client: {
      send: async () => {
        sent.push(now);
        await whileSending();
        return reply;
      },
    },
    announce: (id) => {
      subscriptions.forget(id);
      return Promise.resolve();
    },
    random: () => 0,
    telemetry: { emit: () => undefined },
  });
});
beforeEach(() => {
  now = START;
  sent = [];
  reply = { status: 500 };
  whileSending = () => undefined;
  tenantId = newId('ten');
});

async function subscribe(...types: WebhookEventType[]): Promise<WebhookRow> {
  const webhookId = newId('whk');
  const row: WebhookRow = {
    _id: webhookId,
    tenantId,
    url: 'https://receiver.example.com/',
    events: types,
    description: '',
    status: 'active',
    encryptedSecret: cipher.encrypt(newWebhookSecret(), `webhooks/${webhookId}`),
    createdAt: now,
  };
  await webhooks.insert(row);
  subscriptions.forget(tenantId);
  return row;
}

const live = () => ({ tenantId, mode: 'live' }) as const;

const revoke = (keyId: string) =>
  events.publish([{ tenantId, mode: 'live', type: 'key.revoked', cause: keyId, data: { key_id: keyId }, now }]);

/** Goes from one due moment to the next, as a sweep would, until nothing waits or `until` is reached. */
async function runUntil({ _id }: WebhookRow, until = Infinity): Promise<void> {
  for (;;) {
    const next = await models.webhookDeliveries
      .findOne({ tenantId, webhookId: _id, status: 'pending' })
      .sort({ nextAttemptAt: 1 })
      .lean();
    if (next?.nextAttemptAt === undefined || next.nextAttemptAt > until) return;
    now = Math.max(now, next.nextAttemptAt);
    await deliverNext(tenantId, _id);
  }
}

const stateOf = async ({ _id }: WebhookRow) => (await webhooks.find(live(), _id))?.status;

describe('a delivery', () => {
  it('is attempted at 0, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h and has failed then', async () => {
    const webhook = await subscribe('key.revoked');
    await revoke('key_1');

    await runUntil(webhook);

    const pauses = sent.map((at, index) => (at - (sent[index - 1] ?? START)) / 1000);
    expect(pauses).toEqual([0, 5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]);
    const [delivery] = await deliveries.list(tenantId, webhook._id, { limit: 10, order: 'desc' });
    expect(delivery).toMatchObject({ status: 'failed', failed: 8 });
    expect(delivery?.attempts).toHaveLength(8);
    expect(await stateOf(webhook)).toBe('active');
  });

  it('of a worker that died is taken by another after its lease, and only then', async () => {
    const webhook = await subscribe('key.revoked');
    await revoke('key_1');
    const lost = await deliveries.claim(tenantId, webhook._id, now, 30_000);

    expect(await deliverNext(tenantId, webhook._id)).toBe('none');
    expect(lost && (await deliveries.restart(lost, now))).toBe(false);
    now += 30_000;
    reply = { status: 204 };
    expect(await deliverNext(tenantId, webhook._id)).toBe('done');

    const late = { attempt: { at: now, durationMs: 1, status: 500 }, status: 'failed' } as const;
    expect(lost && (await deliveries.recordAttempt(lost, late))).toBe(false);
    const [delivery] = await deliveries.list(tenantId, webhook._id, { limit: 10, order: 'desc' });
    expect(delivery).toMatchObject({ status: 'succeeded', attempts: [{ status: 204 }] });
  });
});

describe('a webhook', () => {
  it('that was deleted is not sent what waits for it, which has failed then, however much that is', async () => {
    const webhook = await subscribe('key.revoked');
    const about = { ...live(), type: 'key.revoked', data: { key_id: 'key_1' }, now } as const;
    await events.publish(Array.from({ length: 201 }, (_, index) => ({ ...about, cause: `key_${index}` })));

    expect(await webhooks.remove(live(), webhook._id)).toBe(true);

    expect(await deliverNext(tenantId, webhook._id)).toBe('none');
    expect(sent).toEqual([]);
    const failed = { webhookId: webhook._id, status: 'failed' } as const;
    expect(await models.webhookDeliveries.countDocuments(failed)).toBe(201);
  });

  it('whose secret was encrypted with another key is not sent anything, and its owner is told why', async () => {
    const webhook = await subscribe('key.revoked');
    const other = createCredentialCipher(Buffer.alloc(32, 2)).encrypt(newWebhookSecret(), `webhooks/${webhook._id}`);
    await webhooks.change(live(), webhook._id, { encryptedSecret: other });
    await revoke('key_1');

    expect(await deliverNext(tenantId, webhook._id)).toBe('failed');

    expect(sent).toEqual([]);
    const [delivery] = await deliveries.list(tenantId, webhook._id, { limit: 10, order: 'desc' });
    expect(delivery?.attempts[0]?.error).toMatch(/rotate it/);
  });
});

describe('a receiver', () => {
  it('that fails for five days is disabled, what waits for it ends, and the others are told once', async () => {
    const webhook = await subscribe('key.revoked');
    const other = await subscribe('webhook.disabled');

    for (let day = 0; day <= 5; day += 1) {
      expect(await stateOf(webhook)).toBe('active');
      now = START + day * 24 * HOUR;
      await revoke(`key_${day}`);
      await runUntil(webhook, Math.max(now, START + (day + 1) * 24 * HOUR - 1));
    }

    expect(await webhooks.find(live(), webhook._id)).toMatchObject({ status: 'disabled', disabledReason: 'failing' });
    expect(now - START).toBeGreaterThanOrEqual(120 * HOUR);
    expect(await models.webhookDeliveries.countDocuments({ webhookId: webhook._id, status: 'pending' })).toBe(0);
    const told = await deliveries.list(tenantId, other._id, { limit: 10, order: 'desc' });
    expect(told.map(({ type }) => type)).toEqual(['webhook.disabled']);
  });

  it('a receiver that answers well in between is not', async () => {
    const webhook = await subscribe('key.revoked');

    for (let day = 0; day <= 12; day += 1) {
      now = START + day * 24 * HOUR;
      reply = { status: day % 4 === 3 ? 200 : 500 };
      await revoke(`key_${day}`);
      await runUntil(webhook, START + (day + 1) * 24 * HOUR - 1);
    }

    expect(await stateOf(webhook)).toBe('active');
  });

  it('that has answered well since an attempt began is not disabled for it', async () => {
    const webhook = await subscribe('key.revoked');
    await webhooks.change(live(), webhook._id, { failingSince: START - 200 * HOUR, failures: 100 });
    await revoke('key_1');
    await revoke('key_2');
    // The other attempt begins later, and ends sooner.
    whileSending = async () => {
      whileSending = () => undefined;
      reply = { status: 200 };
      await deliverNext(tenantId, webhook._id);
      reply = { status: 500 };
    };

    await deliverNext(tenantId, webhook._id);

    expect(sent).toHaveLength(2);
    expect(await webhooks.find(live(), webhook._id)).toMatchObject({
      status: 'active',
      failingSince: now,
      failures: 1,
    });
  });
});

describe('a webhook whose URL was changed', () => {
  it('is not disabled by what its former receiver answers', async () => {
    const webhook = await subscribe('key.revoked');
    await revoke('key_1');
    whileSending = () => webhooks.change(live(), webhook._id, { url: 'https://new.example.com/' });
    reply = { status: 410 };

    await deliverNext(tenantId, webhook._id);

    expect(await stateOf(webhook)).toBe('active');
    expect(await webhooks.find(live(), webhook._id)).not.toHaveProperty('failingSince');
  });

  it('goes on to its new receiver with what the former one would not take', async () => {
    const webhook = await subscribe('key.revoked');
    await revoke('key_1');
    whileSending = () => webhooks.change(live(), webhook._id, { url: 'https://new.example.com/' });
    reply = { status: 410 };
    await deliverNext(tenantId, webhook._id);

    whileSending = () => undefined;
    reply = { status: 204 };
    await runUntil(webhook);

    const [delivery] = await deliveries.list(tenantId, webhook._id, { limit: 10, order: 'desc' });
    expect(delivery).toMatchObject({ status: 'succeeded', attempts: [{ status: 410 }, { status: 204 }] });
  });
});

describe('an event', () => {
  it('is there once for a cause, however often and by however many it is published', async () => {
    const [one, two] = [await subscribe('key.revoked'), await subscribe('key.revoked')];

    await Promise.all([revoke('key_1'), revoke('key_1'), revoke('key_1')]);
    await revoke('key_1');
    await revoke('key_2');

    expect(await models.webhookEvents.countDocuments({ tenantId })).toBe(2);
    for (const { _id } of [one, two]) {
      expect(await models.webhookDeliveries.countDocuments({ tenantId, webhookId: _id })).toBe(2);
    }
  });

  it('that is published again after its delivery is not delivered again', async () => {
    const webhook = await subscribe('key.revoked');
    reply = { status: 204 };
    await revoke('key_1');
    await runUntil(webhook);

    await revoke('key_1');
    await runUntil(webhook);

    expect(sent).toHaveLength(1);
  });
});

it('an event costs a tenant without webhooks one look-up in half a minute, and nothing is written', async () => {
  let lookUps = 0;
  const space = live();
  const counted = createSubscriptions({
    clock: { now: () => now },
    webhooks: {
      subscriptions: (id) => {
        lookUps += 1;
        return webhooks.subscriptions(id);
      },
    },
  });
  const queue = { add: () => Promise.reject(new Error('Nothing is due')) };
  const sink = createEventSink({ subscriptions: counted, deliveries, log: createRecordingLog(), queue });

  for (let count = 0; count < 100; count += 1) expect(await counted.of(space, 'chat.completed')).toEqual([]);
  expect(lookUps).toBe(1);
  now += 30_000;
  await counted.of(space, 'chat.completed');
  expect(lookUps).toBe(2);
  await sink.publish([{ ...space, type: 'key.revoked', cause: 'key_1', data: { key_id: 'key_1' }, now }]);
  expect(await models.webhookEvents.countDocuments({ tenantId })).toBe(0);
});
