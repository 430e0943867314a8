import { describe, expect, it } from '@jest/globals';

import { WEBHOOK_EVENT_TYPES } from '../../../shared/contracts/webhook-events.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import type { CallApi } from '../../support/tenant-api.ts';
import { useApi, useService, useTenant } from '../../support/use-service.ts';
const service = useService({ workers: 0 });
const tenant = useTenant(service);
const api = useApi(service, tenant);

const URL = 'https://receiver.invalid/hook';

async function makeWebhook(call: CallApi = api, fields: object = {}): Promise<Record<string, unknown>> {
  const { body, status } = await call('post', '/webhooks', { url: URL, events: ['key.created'], ...fields });
  expect(status).toBe(201);
  return body as Record<string, unknown>;
}

const auditOf = async (call: CallApi) => {
  const { body } = await call('get', '/compliance/audit_log?order=asc');
  return (body.data as { action: string; target: string }[]).map(({ action, target }) => [action, target]);
};

describe('POST /webhooks', () => {
  it('makes an active webhook and shows its secret this once', async () => {
    const made = await makeWebhook(api, { description: 'Ours' });

    expect(made).toEqual({
      id: expect.stringMatching(/^whk_[0-9A-Za-z]{24}$/),
      object: 'webhook',
      created_at: expect.any(Number),
      url: URL,
      events: ['key.created'],
      description: 'Ours',
      status: 'active',
      disabled_reason: null,
      failing_since: null,
      previous_secret_expires_at: null,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
    });
    const { secret, ...rest } = made;
    expect((await api('get', `/webhooks/${String(made['id'])}`)).body).toEqual(rest);
    const stored = await service.models.webhooks.findById(made['id']).lean();
    expect(JSON.stringify(stored)).not.toContain(String(secret).slice(6));
  });

  it('POST /webhooks takes every type of event that there is', async () => {
    expect(await makeWebhook(api, { events: WEBHOOK_EVENT_TYPES })).toMatchObject({ events: WEBHOOK_EVENT_TYPES });
  });

  it.each([
    ['an unknown event', { events: ['key.created', 'key.eaten', 'chat.*'] }, 'events', /"key\.eaten", "chat\.\*"/],
    ['a name that every object has', { events: ['toString'] }, 'events', /"toString"/],
    ['no events', { events: [] }, 'events', /events/],
    ['an event twice', { events: ['ping', 'ping'] }, 'events[1]', /events/],
    ['plain http', { url: 'http://example.com/' }, 'url', /https:.* WEBHOOK_ALLOW_PRIVATE=true/],
    ['a private address', { url: 'https://10.0.0.1/' }, 'url', /public Internet; .*WEBHOOK_ALLOW_PRIVATE=true/],
    ['no address', { url: 'receiver' }, 'url', /must be an absolute URL\.$/],
    ['no text', { url: 5 }, 'url', /url/],
    ['half a surrogate pair', { description: '\ud800' }, 'description', /half a surrogate pair/],
    ['half a pair in its address', { url: `${URL}\ud800` }, 'url', /half a surrogate pair/],
    ['an unknown field', { secret: 'mine' }, 'secret', /secret/],
  ])('POST /webhooks refuses %s', async (_what, fields, param, sentence) => {
    const refusal = refusalOf(await api('post', '/webhooks', { url: URL, events: ['ping'], ...fields }));

    expect(refusal).toMatchObject({ status: 400, code: 'invalid_request', param });
    expect(refusal.message).toMatch(sentence);
  });

  it('refuses the 21st, however many come at the same time', async () => {
    const call = apiOf(service, (await service.startTenant()).key);

    const answers = await Promise.all(
      Array.from({ length: 25 }, () => call('post', '/webhooks', { url: URL, events: ['ping'] })),
    );

    expect(answers.filter(({ status }) => status === 201)).toHaveLength(20);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(5);
  });
});

describe('a webhook', () => {
  it('is listed, changed, disabled, enabled again and deleted', async () => {
    const call = apiOf(service, (await service.startTenant()).key);
    const id = String((await makeWebhook(call))['id']);

    const changed = await call('patch', `/webhooks/${id}`, { url: `${URL}/2`, events: ['ping'], description: 'x' });
    expect(changed.body).toMatchObject({ id, url: `${URL}/2`, events: ['ping'], description: 'x', status: 'active' });
    expect((await call('patch', `/webhooks/${id}`, { status: 'disabled' })).body).toMatchObject({
      status: 'disabled',
      disabled_reason: 'request',
    });
    expect(refusalOf(await call('post', `/webhooks/${id}/test`))).toMatchObject({ status: 409, code: 'conflict' });
    expect((await call('patch', `/webhooks/${id}`, { status: 'active' })).body).toMatchObject({
      status: 'active',
      disabled_reason: null,
    });
    expect((await call('get', '/webhooks')).body).toMatchObject({ object: 'list', data: [{ id }], has_more: false });
    expect((await call('delete', `/webhooks/${id}`)).body).toEqual({ id, object: 'webhook', deleted: true });
    expect((await call('get', `/webhooks/${id}`)).status).toBe(404);
    expect((await call('delete', `/webhooks/${id}`)).status).toBe(404);
  });

  it('cannot be given what a new one cannot have', async () => {
    const id = String((await makeWebhook())['id']);

    for (const body of [{ events: ['key.eaten'] }, { url: 'https://localhost/' }, { status: 'gone' }, { id: 'x' }]) {
      expect((await api('patch', `/webhooks/${id}`, body)).status).toBe(400);
    }
  });

  it('leaves a line in the audit log for each change', async () => {
    const call = apiOf(service, (await service.startTenant()).key);
    const id = String((await makeWebhook(call))['id']);

    await call('patch', `/webhooks/${id}`, { description: 'x' });
    await call('post', `/webhooks/${id}/rotate_secret`);
    await call('delete', `/webhooks/${id}`);

    expect((await auditOf(call)).filter(([, target]) => target === id).map(([action]) => action)).toEqual([
      'webhook.created',
      'webhook.updated',
      'webhook.secret_rotated',
      'webhook.deleted',
    ]);
  });
});

describe('POST /webhooks/{id}/rotate_secret', () => {
  it('shows a new secret once; the old one signs for a day unless another grace is asked for', async () => {
    const made = await makeWebhook();
    const path = `/webhooks/${String(made['id'])}/rotate_secret`;
    const now = Math.floor(Date.now() / 1000);

    const rotated = await api('post', path);
    expect(rotated.status).toBe(200);
    expect(rotated.body.secret).toMatch(/^whsec_/);
    expect(rotated.body.secret).not.toBe(made['secret']);
    expect(rotated.body.previous_secret_expires_at - now).toBeGreaterThanOrEqual(86_400);
    expect(rotated.body.previous_secret_expires_at - now).toBeLessThan(86_500);

    const leaked = await api('post', path, { grace_seconds: 0 });
    expect(leaked.body).toMatchObject({ previous_secret_expires_at: null });
  });

  it('POST /webhooks/{id}/rotate_secret refuses a fourth earlier secret', async () => {
    const path = `/webhooks/${String((await makeWebhook())['id'])}/rotate_secret`;

    for (let count = 0; count < 3; count += 1) expect((await api('post', path)).status).toBe(200);
    expect(refusalOf(await api('post', path))).toMatchObject({ status: 409, param: 'grace_seconds' });
    expect((await api('post', path, { grace_seconds: 0 })).status).toBe(200);
  });
});

describe('deliveries', () => {
  it('deliveries are those of the webhook in the path', async () => {
    const [one, two] = [await makeWebhook(), await makeWebhook()].map(({ id }) => String(id));
    const sent = await api('post', `/webhooks/${one}/test`);

    expect(sent.status).toBe(202);
    expect(sent.headers['location']).toBe(`/platform/v1/webhooks/${one}/deliveries/${String(sent.body.id)}`);
    expect(sent.body).toEqual({
      id: expect.stringMatching(/^dlv_[0-9A-Za-z]{24}$/),
      object: 'webhook.delivery',
      created_at: expect.any(Number),
      webhook_id: one,
      event_id: expect.stringMatching(/^evt_[0-9A-Za-z]{24}$/),
      event_type: 'ping',
      status: 'pending',
      next_attempt_at: expect.any(Number),
      attempts: [],
    });
    expect((await api('get', `/webhooks/${one}/deliveries`)).body.data).toEqual([sent.body]);
    expect((await api('get', `/webhooks/${one}/deliveries/${String(sent.body.id)}`)).body).toEqual(sent.body);
    expect((await api('get', `/webhooks/${two}/deliveries`)).body.data).toEqual([]);
    expect((await api('get', `/webhooks/${two}/deliveries/${String(sent.body.id)}`)).status).toBe(404);
  });
});
