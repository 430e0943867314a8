import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { ADMIN_TOKEN, errorOf } from '../../support/admin.ts';
import { useAdmin } from '../../support/use-service.ts';

const READER = 'reader-0123456789abcdef0123456789abcdef';
const admin = useAdmin({
  adminTokens: [
    { name: 'dana', role: 'write', token: ADMIN_TOKEN },
    { name: 'grafana', role: 'read', token: READER },
  ],
  http: { trustProxy: ['loopback'], requireHttps: false },
});
const CANARY = 'sk-canary-0123456789abcdef';
const PROVIDER = { kind: 'openai', base_url: 'https://api.openai.com/v1', api_key: CANARY };

type Entry = Record<string, unknown> & { id: string };

async function latest(count = 1): Promise<Entry[]> {
  const { body } = await admin.call('get', `/admin/v1/audit_log?limit=${count}`);
  return body.data as Entry[];
}

describe('GET /admin/v1/audit_log', () => {
  it('has each change with who made it, from where, and what it was, without secrets', async () => {
    admin.clock.advance(1_000);
    const put = await admin.call('put', '/admin/v1/providers/openai', PROVIDER, { 'X-Forwarded-For': '203.0.113.5' });

    const [line] = await latest();

    expect(line).toEqual({
      id: expect.stringMatching(/^aud_\w{24}$/),
      object: 'admin_audit_log.entry',
      created_at: Math.floor(admin.clock.now() / 1000),
      actor: 'dana',
      role: 'write',
      action: 'change',
      method: 'PUT',
      path: '/admin/v1/providers/openai',
      target: 'openai',
      changes: { ...PROVIDER, api_key: '[hidden]' },
      status: 201,
      request_id: put.headers['x-request-id'],
      address: '203.0.113.5',
    });
    const rows = await admin.models.adminAudit.find().lean();
    expect(JSON.stringify(rows)).not.toContain(CANARY);
  });

  it('names what a call has made', async () => {
    admin.clock.advance(1_000);
    const made = await admin.call('post', '/admin/v1/tenants', { name: 'Lakeside School' });

    expect((await latest())[0]).toMatchObject({
      method: 'POST',
      target: made.body.id,
      changes: { name: 'Lakeside School' },
    });
  });

  it('has a refused change with its status, and none that was malformed', async () => {
    admin.clock.advance(1_000);
    await admin.call('delete', '/admin/v1/providers/nobody');
    admin.clock.advance(1_000);
    await admin.call('put', '/admin/v1/providers/openai', { kind: 'openai', apikey: CANARY });

    expect((await latest())[0]).toMatchObject({ method: 'DELETE', target: 'nobody', status: 404, changes: null });
  });

  it('has no line of what only looks', async () => {
    const before = await latest();
    await admin.call('get', '/admin/v1/tenants');

    expect(await latest()).toEqual(before);
  });

  it('has sign-ins, log-outs and addresses that guess', async () => {
    admin.clock.advance(1_000);
    const sign = (token: string) =>
      request(admin.app).post('/admin/sign-in').type('form').set('X-Forwarded-For', '203.0.113.77').send({ token });
    const cookie = String((await sign(ADMIN_TOKEN)).headers['set-cookie']).split(';')[0] ?? '';
    admin.clock.advance(1_000);
    await request(admin.app).post('/admin/sign-out').set('Cookie', cookie);
    admin.clock.advance(1_000);
    for (let count = 0; count < 15; count += 1) await sign(`wrong-${count}`);

    const [guesses, out, entry] = await latest(3);

    expect(entry).toMatchObject({ action: 'sign_in', actor: 'dana', address: '203.0.113.77' });
    expect(out).toMatchObject({ action: 'sign_out', actor: 'dana' });
    expect(guesses).toMatchObject({ action: 'refused_tokens', actor: null, address: '203.0.113.77' });
    expect(JSON.stringify(await latest(3))).not.toMatch(/wrong-|an-administrator/);
  });

  it('is open to a token that may only read', async () => {
    const response = await request(admin.app).get('/admin/v1/audit_log').auth(READER, { type: 'bearer' });
    expect(response.status).toBe(200);
  });

  it('is read in pages', async () => {
    const first = await admin.call('get', '/admin/v1/audit_log?limit=1&order=asc');
    const next = await admin.call('get', `/admin/v1/audit_log?limit=1&order=asc&after=${String(first.body.last_id)}`);
    const unknown = await admin.call('get', '/admin/v1/audit_log?after=aud_1');

    expect(first.body.has_more).toBe(true);
    expect(next.body.first_id).not.toBe(first.body.first_id);
    expect(errorOf(unknown)).toMatchObject({ code: 'invalid_request', param: 'after' });
  });

  it('forgets a line after 400 days', async () => {
    const row = await admin.models.adminAudit.findOne().lean();
    const indexes = await admin.models.adminAudit.collection.indexes();

    expect((row?.expiresAt.getTime() ?? 0) - (row?.createdAt ?? 0)).toBe(400 * 24 * 3_600_000);
    expect(indexes).toContainEqual(expect.objectContaining({ key: { expiresAt: 1 }, expireAfterSeconds: 0 }));
  });
});

describe('a change whose line cannot be written', () => {
  const mute = useAdmin({
    adminAudit: {
      append: () => Promise.reject(new Error('no room')),
      conclude: () => Promise.resolve(),
      list: () => Promise.resolve([]),
    },
  });

  it('is not made', async () => {
    const refused = await mute.call('put', '/admin/v1/providers/openai', PROVIDER);

    expect(refused.status).toBe(500);
    expect(await mute.models.providers.countDocuments()).toBe(0);
  });
});
