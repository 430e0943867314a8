import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';

import { refusalOf } from '../../support/refusal.ts';
import { startService } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useApi, useService, useTenantPerTest } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';
import type { ReceivedWebhook, WebhookReceiver } from '../../support/webhook-receiver.ts';
let receiver: WebhookReceiver;
const service = useService({ env: { WEBHOOK_ALLOW_PRIVATE: 'true' } });
const tenant = useTenantPerTest(service);
const api = useApi(service, tenant);
beforeEach(async () => {
  receiver = await startWebhookReceiver();
});
afterEach(() => receiver.close());

async function subscribe(events: string[], url = receiver.url): Promise<{ id: string; secret: string }> {
  const { body } = await api('post', '/webhooks', { url, events });
  return body as { id: string; secret: string };
}

const verify = (secret: string, { text, headers }: ReceivedWebhook) =>
  new Webhook(secret).verify(text, headers as Record<string, string>);

function deliveryOf(webhookId: string, isWanted: (delivery: Record<string, unknown>) => boolean) {
  return waitFor(async () => {
    const { body } = await api('get', `/webhooks/${webhookId}/deliveries`);
    return (body.data as Record<string, unknown>[]).find(isWanted);
  }, 'the delivery');
}

describe('a delivery', () => {
  it('is signed so that a receiver can verify it with the Standard Webhooks library', async () => {
    const { id, secret } = await subscribe(['key.created']);
    await api('post', `/webhooks/${id}/test`);

    const ping = await receiver.next('ping');

    expect(ping.headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': ping.body.id });
    expect(verify(secret, ping)).toEqual({
      id: expect.stringMatching(/^evt_/),
      type: 'ping',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      data: { webhook_id: id },
    });
    expect(() => verify(`whsec_${Buffer.alloc(32).toString('base64')}`, ping)).toThrow('No matching signature');
    expect(await deliveryOf(id, ({ status }) => status === 'succeeded')).toMatchObject({
      event_type: 'ping',
      next_attempt_at: null,
      attempts: [{ status_code: 204, error: null, duration_ms: expect.any(Number) }],
    });
  });

  it('verifies with both secrets in the grace of a rotation, and with the new one alone after a grace of 0', async () => {
    const { id, secret } = await subscribe(['ping']);
    const rotated = await api('post', `/webhooks/${id}/rotate_secret`);
    await api('post', `/webhooks/${id}/test`);
    const first = await receiver.next('ping');

    expect(String(first.headers['webhook-signature']).split(' ')).toHaveLength(2);
    for (const one of [secret, String(rotated.body.secret)]) expect(verify(one, first)).toBeDefined();

    const newest = await api('post', `/webhooks/${id}/rotate_secret`, { grace_seconds: 0 });
    await api('post', `/webhooks/${id}/test`);
    const second = await receiver.next('ping', 2);

    expect(verify(String(newest.body.secret), second)).toBeDefined();
    expect(() => verify(secret, second)).toThrow('No matching signature');
  });

  it('that failed is tried again, with the same id and body, and can be asked for again', async () => {
    const { id } = await subscribe(['ping']);
    receiver.answerWith((res) => res.writeHead(500).end('a secret of the receiver'));
    const sent = await api('post', `/webhooks/${id}/test`);
    const path = `/webhooks/${id}/deliveries/${String(sent.body.id)}`;

    const failed = await deliveryOf(id, ({ attempts }) => (attempts as unknown[]).length === 1);
    expect(failed).toMatchObject({
      status: 'pending',
      attempts: [{ status_code: 500, error: 'The receiver answered with status 500.' }],
    });
    expect(JSON.stringify(failed)).not.toContain('a secret of the receiver');
    expect((await api('get', `/webhooks/${id}`)).body.failing_since).toEqual(expect.any(Number));

    receiver.answerWith((res) => res.writeHead(204).end());
    expect((await api('post', `${path}/redeliver`)).status).toBe(202);
    await deliveryOf(id, ({ status }) => status === 'succeeded');
    const [one, two] = receiver.received;
    expect(two?.text).toBe(one?.text);
    expect(two?.headers['webhook-id']).toBe(one?.headers['webhook-id']);
    // The webhook is written behind its delivery.
    const failingSince = async () => (await api('get', `/webhooks/${id}`)).body.failing_since as number | null;
    await waitFor(async () => ((await failingSince()) === null ? true : null), 'the webhook to be well');

    expect((await api('post', `${path}/redeliver`)).status).toBe(202);
    await receiver.next('ping', 3);
  });

  it('that failed says nothing of another receiver: with a new URL the webhook is well', async () => {
    const { id } = await subscribe(['ping']);
    receiver.answerWith((res) => res.writeHead(500).end());
    await api('post', `/webhooks/${id}/test`);
    const failingSince = async () => (await api('get', `/webhooks/${id}`)).body.failing_since as number | null;
    await waitFor(async () => (await failingSince()) ?? undefined, 'the webhook to fail');

    await api('patch', `/webhooks/${id}`, { url: receiver.url });
    expect(await failingSince()).toEqual(expect.any(Number));
    const changed = await api('patch', `/webhooks/${id}`, { url: `${receiver.url}/new` });

    expect(changed.body.failing_since).toBeNull();
  });

  it('comes though Redis has forgotten that it is due', async () => {
    const idle = await startService({ workers: 0, env: { WEBHOOK_ALLOW_PRIVATE: 'true' } });
    const { key } = await idle.startTenant();
    const call = apiOf(idle, key);
    const { body } = await call('post', '/webhooks', { url: receiver.url, events: ['ping'] });
    await call('post', `/webhooks/${String(body.id)}/test`);
    const queued = await idle.redis.keys(`${idle.keyspace.webhooks}:*`);
    expect(queued).not.toEqual([]);
    await idle.redis.del(...queued);

    await idle.startWorker();

    expect((await receiver.next('ping')).body.data).toEqual({ webhook_id: body.id });
    await idle.close();
  });

  it('a delivery does not follow a redirect', async () => {
    const other = await startWebhookReceiver();
    const { id } = await subscribe(['ping']);
    receiver.answerWith((res) => res.writeHead(307, { Location: other.url }).end());

    await api('post', `/webhooks/${id}/test`);

    const failed = await deliveryOf(id, ({ attempts }) => (attempts as unknown[]).length === 1);
    expect(failed).toMatchObject({
      attempts: [{ error: 'The receiver answered with status 307. Redirects are not followed.' }],
    });
    expect(other.received).toEqual([]);
    await other.close();
  });

  it('that is answered 410 disables its webhook, which the others are told', async () => {
    const gone = await startWebhookReceiver();
    gone.answerWith((res) => res.writeHead(410).end());
    const { id } = await subscribe(['ping', 'webhook.disabled'], gone.url);
    await subscribe(['webhook.disabled']);

    await api('post', `/webhooks/${id}/test`);

    const told = await receiver.next('webhook.disabled');
    expect(told.body.data).toEqual({ webhook_id: id, url: gone.url, reason: 'gone' });
    expect((await api('get', `/webhooks/${id}`)).body).toMatchObject({ status: 'disabled', disabled_reason: 'gone' });
    expect(await deliveryOf(id, () => true)).toMatchObject({ status: 'failed', next_attempt_at: null });
    expect(gone.received).toHaveLength(1);
    await gone.close();
  });

  it('a delivery does not wait for a receiver that hangs', async () => {
    const hanging = await startWebhookReceiver();
    hanging.answerWith(() => undefined);
    const { id } = await subscribe(['key.created'], hanging.url);
    await subscribe(['key.created']);
    for (let count = 0; count < 6; count += 1) await api('post', `/webhooks/${id}/test`);
    await hanging.next('ping');

    const made = await makeKey(api, {});

    expect((await receiver.next('key.created')).body.data).toMatchObject({ key_id: made.id });
    // However much waits for it, it is asked a few things at a time.
    expect(hanging.received.length).toBeLessThanOrEqual(4);
    await hanging.close();
  });
});

it.each(['a ping', 'another delivery'])('may be asked for ten times a minute: %s', async (what) => {
  const { id } = await subscribe(['ping']);
  const sent = await api('post', `/webhooks/${id}/test`);
  const path = what === 'a ping' ? 'test' : `deliveries/${String(sent.body.id)}/redeliver`;
  const before = what === 'a ping' ? 1 : 0;

  const statuses: number[] = [];
  for (let count = before; count < 10; count += 1) statuses.push((await api('post', `/webhooks/${id}/${path}`)).status);
  const refused = await api('post', `/webhooks/${id}/${path}`);

  expect(statuses).not.toContain(429);
  expect(refusalOf(refused)).toMatchObject({ status: 429, code: 'rpm_exceeded' });
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
});
