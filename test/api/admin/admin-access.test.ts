import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { ADMIN_TOKEN, errorOf } from '../../support/admin.ts';
import { useAdmin } from '../../support/use-service.ts';
const admin = useAdmin();

const HTML = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

function signIn(token: string) {
  return request(admin.app).post('/admin/sign-in').type('form').send({ token });
}

async function sessionCookie(): Promise<string> {
  const response = await signIn(ADMIN_TOKEN);
  return String(response.headers['set-cookie']).split(';')[0] ?? '';
}

describe('the token', () => {
  it.each([
    ['another token', 'Bearer wrong'],
    ['a longer token', `Bearer ${ADMIN_TOKEN}x`],
    ['two tokens', `Bearer ${ADMIN_TOKEN} ${ADMIN_TOKEN}`],
    ['another scheme', `Basic ${ADMIN_TOKEN}`],
  ])('the token is refused as %s', async (_case, header) => {
    const response = await request(admin.app).get('/admin/v1/tenants').set('Authorization', header);
    expect([response.status, response.headers['www-authenticate']]).toEqual([401, 'Bearer']);
    expect(errorOf(response)['code']).toBe('invalid_api_key');
  });

  it('the token is checked before the body is read', async () => {
    const response = await request(admin.app)
      .post('/admin/v1/tenants')
      .type('json')
      .send(`{"name":"${'x'.repeat(100_000)}`);
    expect(response.status).toBe(401);
  });

  it('is not replaced by a session on the JSON interface', async () => {
    const response = await request(admin.app)
      .get('/admin/v1/tenants')
      .set('Cookie', await sessionCookie());
    expect(response.status).toBe(401);
  });
});

describe('the sign-in form', () => {
  it('loads nothing from elsewhere and runs no script', async () => {
    const response = await request(admin.app).get('/admin/sign-in');
    expect(response.status).toBe(200);
    expect(response.headers['content-security-policy']).toContain("default-src 'none'");
    expect(response.text).not.toMatch(/https?:|<script|src=/);
  });

  it('sets a cookie that scripts and other sites cannot use and that is not the token', async () => {
    const response = await signIn(ADMIN_TOKEN);
    const cookie = String(response.headers['set-cookie']);
    expect(response.status).toBe(303);
    expect(response.headers['location']).toBe('/admin/queues');
    expect(cookie).toMatch(/HttpOnly/);
    expect(cookie).toMatch(/SameSite=Strict/);
    expect(cookie).not.toContain(ADMIN_TOKEN);
  });

  it('the sign-in form refuses a wrong token without a cookie', async () => {
    const response = await signIn('wrong');
    expect([response.status, response.headers['www-authenticate']]).toEqual([401, 'Bearer']);
    expect(response.headers['set-cookie']).toBeUndefined();
    expect(response.text).toContain('not the token of an administrator');
  });

  it.each([
    ['two tokens', 'application/x-www-form-urlencoded', 'token=a&token=b', 401],
    ['no token', 'application/x-www-form-urlencoded', '', 401],
    ['JSON', 'application/json', '{"token":"x"}', 415],
    ['an endless token', 'application/x-www-form-urlencoded', `token=${'x'.repeat(10_000)}`, 400],
  ])('the sign-in form answers %s with its own status', async (_case, type, body, status) => {
    const response = await request(admin.app).post('/admin/sign-in').set('Content-Type', type).send(body);
    expect(response.status).toBe(status);
  });
});

describe('pages', () => {
  it('send a browser without a session to the form', async () => {
    const response = await request(admin.app).get('/admin/queues').set('Accept', HTML);
    expect(response.status).toBe(303);
    expect(response.headers['location']).toMatch(/^\/admin\/sign-in/);
  });

  it('a browser comes back to the page that it asked for, after a wrong token too', async () => {
    const link = '/admin/queues/queue/interactive%3A0?status=failed&page=2';
    const asked = await request(admin.app).get(link).set('Accept', HTML);
    const form = await request(admin.app).get(String(asked.headers['location']));
    const actionIn = ({ text }: { text: string }) => /action="([^"]+)"/.exec(text)?.[1] ?? '';
    // With `no-referrer` a browser would say that its own form has no origin.
    expect(form.headers['referrer-policy']).toBe('same-origin');
    const wrong = await request(admin.app).post(actionIn(form)).type('form').send({ token: 'wrong' });
    expect(wrong.status).toBe(401);

    const right = await request(admin.app).post(actionIn(wrong)).type('form').send({ token: ADMIN_TOKEN });

    expect([right.status, right.headers['location']]).toEqual([303, link]);
  });

  it.each([
    'https://evil.example/admin/queues',
    '//evil.example/admin/queues',
    '/\\evil.example/admin/',
    '/admin/..//evil.example',
    '/admin/%2e%2e//evil.example',
    'javascript:alert(1)//admin/',
    '/admin/sign-in',
    '/platform/v1/chat',
    '"><b>',
  ])('signing in leads to no other place: %s', async (to) => {
    const path = `/admin/sign-in?to=${encodeURIComponent(to)}`;
    const [form, signed] = await Promise.all([
      request(admin.app).get(path),
      request(admin.app).post(path).type('form').send({ token: ADMIN_TOKEN }),
    ]);
    expect(signed.headers['location']).toBe('/admin/queues');
    expect(form.text).toContain('<form method="post" action="/admin/sign-in">');
  });

  it('answer 401 to anything else without a session', async () => {
    const response = await request(admin.app).get('/admin/queues/api/queues').set('Accept', 'application/json');
    expect(response.status).toBe(401);
    expect(errorOf(response)['code']).toBe('missing_api_key');
  });

  it('pages open with the token', async () => {
    const response = await admin.call('get', '/admin/queues');
    expect(response.status).toBe(200);
  });

  it('pages open with a session', async () => {
    const response = await request(admin.app)
      .get('/admin/queues')
      .set('Cookie', await sessionCookie());
    expect(response.status).toBe(200);
  });

  it('stay closed to a session that was extended by hand', async () => {
    const [name = '', value = ''] = (await sessionCookie()).split('=');
    const [expiry = '', ...rest] = value.split('.');
    const forged = [`${name}=${Number(expiry) + 1}`, ...rest].join('.');
    const response = await request(admin.app).get('/admin/queues').set('Cookie', forged);
    expect(response.status).toBe(401);
  });

  it('pages stay closed to a session that has ended', async () => {
    const cookie = await sessionCookie();
    admin.clock.advance(12 * 60 * 60 * 1000 + 1_000);
    const response = await request(admin.app).get('/admin/queues').set('Cookie', cookie);
    expect(response.status).toBe(401);
  });
});

describe('a session on the board', () => {
  const pause = async (headers: Record<string, string>) =>
    request(admin.app)
      .put('/admin/queues/api/queues/pause')
      .set('Cookie', await sessionCookie())
      .set(headers);

  it.each([
    ['another site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['another port or subdomain', { 'Sec-Fetch-Site': 'same-site' }],
    ['another origin, in an old browser', { Origin: 'http://127.0.0.1:1' }],
    ['a page without an origin', { Origin: 'null' }],
  ])('changes nothing for %s', async (_whose, headers) => {
    const response = await pause(headers);
    expect(response.status).toBe(403);
    expect(errorOf(response)['code']).toBe('endpoint_not_allowed');
  });

  it.each([
    ['its own page', { 'Sec-Fetch-Site': 'same-origin' }],
    ['its own page, in an old browser', { Host: 'parley.test', Origin: 'https://parley.test' }],
    ['what is no browser', {}],
  ])('is let through for %s', async (_whose, headers) => {
    // The board itself refuses: it only shows.
    expect((await pause(headers as Record<string, string>)).status).toBe(405);
  });
});

describe('every answer', () => {
  it.each([
    ['get', '/nothing-here', 404, 'not_found'],
    ['get', '/admin/v1/nothing-here', 404, 'not_found'],
    ['get', '/admin/v1/tenants/%E0%A4%A', 400, 'invalid_request'],
    ['delete', '/admin/v1/tenants', 405, 'method_not_allowed'],
    ['post', '/metrics', 405, 'method_not_allowed'],
  ] as const)('to %s %s is the uniform error with a request id', async (method, path, status, code) => {
    const response = await admin.call(method, path, method === 'post' ? {} : undefined);
    expect(response.status).toBe(status);
    expect(errorOf(response)['code']).toBe(code);
    expect(response.headers['x-request-id']).toMatch(/^req_[0-9A-Za-z]{24}$/);
    expect(admin.errors).toEqual([]);
  });

  it('to a method that a path lacks names the ones it has', async () => {
    const response = await admin.call('put', '/admin/v1/tenants', {});
    expect(response.headers['allow']).toBe('GET, HEAD, POST');
  });

  it('is not cached and does not name the framework', async () => {
    const response = await admin.call('get', '/admin/v1/tenants');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.headers['x-powered-by']).toBeUndefined();
  });
});

describe('without a token', () => {
  it('metrics can be scraped', async () => {
    const response = await request(admin.app).get('/metrics');
    expect(response.text).toBe('up 1\n');
    expect(response.headers['content-type']).toContain('version=0.0.4');
  });

  it('deep health can be read', async () => {
    const response = await request(admin.app).get('/health/deep');
    expect(response.body).toEqual({ status: 'ok' });
  });
});

describe('a body', () => {
  async function post(type: string, body: string) {
    return request(admin.app)
      .post('/admin/v1/tenants')
      .auth(ADMIN_TOKEN, { type: 'bearer' })
      .set('Content-Type', type)
      .send(body);
  }

  it.each([
    ['that is malformed', 'application/json', '{"name":', 400, 'invalid_request'],
    ['that is null', 'application/json', 'null', 400, 'invalid_request'],
    ['that is an array', 'application/json', '[]', 400, 'invalid_request'],
    ['that is a number', 'application/json', '5', 400, 'invalid_request'],
    ['that is empty', 'application/json', '', 400, 'invalid_request'],
    ['of plain text', 'text/plain', '{"name":"x"}', 415, 'unsupported_media_type'],
    ['in another charset', 'application/json; charset=utf-16', '{"name":"x"}', 415, 'unsupported_media_type'],
    ['that is too large', 'application/json', `{"name":"${'x'.repeat(70_000)}"}`, 413, 'payload_too_large'],
    ['that is nested deeply', 'application/json', '['.repeat(30_000), 400, 'invalid_request'],
  ])('a body %s is refused with its own code', async (_case, type, body, status, code) => {
    const response = await post(type, body);
    expect(response.status).toBe(status);
    expect(errorOf(response)['code']).toBe(code);
    expect(admin.errors).toEqual([]);
  });

  it('cannot reach the prototype of what is read', async () => {
    const response = await post('application/json', '{"name":"x","__proto__":{"status":"suspended","rpm":0}}');
    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param: '__proto__' });
  });
});
