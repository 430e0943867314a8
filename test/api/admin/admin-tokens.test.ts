import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import type { RefusalWatch } from '../../../api/http/refusal-watch.ts';
import { ADMIN_TOKEN, errorOf, startAdmin } from '../../support/admin.ts';
import { useAdmin } from '../../support/use-service.ts';

const [DANA, OLD, READER] = ['dana', 'old', 'reader'].map((name) => `${name}-0123456789abcdef0123456789abcdef`);
const TOKENS = [
  { name: 'admin', role: 'write', token: ADMIN_TOKEN },
  { name: 'dana', role: 'write', token: DANA ?? '' },
  { name: 'dana', role: 'write', token: OLD ?? '' },
  { name: 'grafana', role: 'read', token: READER ?? '' },
] as const;
const PROXIED = { trustProxy: ['loopback'], requireHttps: true };

const noted: Parameters<RefusalWatch['note']>[] = [];
const admin = useAdmin({ adminTokens: TOKENS, http: PROXIED, refusals: { note: (...refusal) => noted.push(refusal) } });

let addresses = 0;
/** An address that no other test has used. */
function newAddress(): string {
  addresses += 1;
  return `198.51.100.${addresses}`;
}
const from = (address: string, proto = 'https') => ({ 'X-Forwarded-For': address, 'X-Forwarded-Proto': proto });

function list(token: string | undefined, address = newAddress()) {
  return request(admin.app)
    .get('/admin/v1/tenants')
    .auth(token ?? '', { type: 'bearer' })
    .set(from(address));
}
function create(token: string | undefined) {
  const call = request(admin.app)
    .post('/admin/v1/tenants')
    .auth(token ?? '', { type: 'bearer' });
  return call.set(from(newAddress())).send({ name: 'Lakeside School' });
}
function signIn(token: string | undefined, address = newAddress()) {
  return request(admin.app).post('/admin/sign-in').type('form').set(from(address)).send({ token });
}
const cookieOf = (response: request.Response) => String(response.headers['set-cookie']).split(';')[0] ?? '';
function board(cookie: string, app = admin.app) {
  return request(app).get('/admin/queues').set(from(newAddress())).set('Cookie', cookie);
}

describe('tokens by name', () => {
  it('each of them opens the administration, two of one name as well', async () => {
    const statuses = await Promise.all(TOKENS.map(async ({ token }) => (await list(token)).status));

    expect(statuses).toEqual([200, 200, 200, 200]);
  });

  it('one with the role read looks and changes nothing', async () => {
    const looked = await list(READER);
    const refused = await create(READER);

    expect(looked.status).toBe(200);
    expect(refused.status).toBe(403);
    expect(errorOf(refused)).toMatchObject({
      code: 'endpoint_not_allowed',
      message: expect.stringContaining('`grafana` may only read'),
    });
    expect((await create(DANA)).status).toBe(201);
  });

  it('one with the role read opens the pages', async () => {
    expect((await board(cookieOf(await signIn(READER)))).status).toBe(200);
  });
});

describe('ten wrong tokens a minute', () => {
  it('keep an address out, with the form and the JSON interface together, and tell it for how long', async () => {
    const address = newAddress();
    const wrong = [];
    for (let count = 0; count < 5; count += 1) {
      wrong.push((await list(`wrong-${count}`, address)).status);
      wrong.push((await signIn(`wrong-${count}`, address)).status);
    }
    const eleventh = await list('wrong', address);
    const right = await list(ADMIN_TOKEN, address);
    const form = await signIn(ADMIN_TOKEN, address);

    expect(new Set(wrong)).toEqual(new Set([401]));
    for (const refused of [eleventh, right]) {
      expect(errorOf(refused)).toMatchObject({ code: 'rpm_exceeded', type: 'rate_limit_error' });
      expect(refused.status).toBe(429);
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
    }
    expect([form.status, form.headers['set-cookie']]).toEqual([429, undefined]);
  });

  it('keep nobody else out, and not for longer than the minute', async () => {
    const address = newAddress();
    for (let count = 0; count <= 10; count += 1) await list('wrong', address);

    expect((await list(ADMIN_TOKEN)).status).toBe(200);
    admin.clock.advance(60_001);
    expect((await list(ADMIN_TOKEN, address)).status).toBe(200);
  });

  it.each([{ 'Sec-Fetch-Site': 'cross-site' }, { Origin: 'https://evil.example' }, { Origin: 'null' }])(
    'are not counted when a page of another site sends them: %j',
    async (headers) => {
      const address = newAddress();
      for (let count = 0; count <= 10; count += 1)
        expect((await signIn('wrong', address).set(headers)).status).toBe(403);

      expect((await list(ADMIN_TOKEN, address)).status).toBe(200);
    },
  );

  it('are counted for a whole network of IPv6', async () => {
    for (let host = 1; host <= 11; host += 1) await list('wrong', `2001:db8:7::${host}`);

    expect((await list(ADMIN_TOKEN, '2001:db8:7::ffff')).status).toBe(429);
    expect((await list(ADMIN_TOKEN, '2001:db8:8::1')).status).toBe(200);
  });

  it('are told of, without the token', async () => {
    const address = newAddress();
    await list('hunter2', address);

    expect(noted).toContainEqual(['admin', 'invalid_api_key', address]);
    expect(JSON.stringify(noted)).not.toContain('hunter2');
  });
});

describe('HTTPS', () => {
  it('is required of strangers, and of the sign-in form', async () => {
    const plain = from(newAddress(), 'http');
    const calls = [
      request(admin.app).get('/admin/v1/tenants').auth(ADMIN_TOKEN, { type: 'bearer' }).set(plain),
      request(admin.app).get('/admin/sign-in').set(plain),
      request(admin.app).get('/metrics').auth(ADMIN_TOKEN, { type: 'bearer' }).set(plain),
    ];
    for (const response of await Promise.all(calls)) {
      expect(response.status).toBe(400);
      expect(errorOf(response)['message']).toContain('HTTPS is required');
    }
  });

  it('behind a proxy that ends TLS makes the cookie Secure', async () => {
    expect(String((await signIn(DANA)).headers['set-cookie'])).toMatch(/; Secure/);
  });
});

describe('a session', () => {
  it('ends with its log-out, the copy of its cookie too', async () => {
    const cookie = cookieOf(await signIn(DANA));
    expect((await board(cookie)).status).toBe(200);

    const out = await request(admin.app).post('/admin/sign-out').set(from(newAddress())).set('Cookie', cookie);

    expect([out.status, out.headers['location']]).toEqual([303, '/admin/sign-in']);
    expect(String(out.headers['set-cookie'])).toContain('parley_admin=;');
    expect((await board(cookie)).status).toBe(401);
  });

  it('ends when its token is taken off the list, and no other does', async () => {
    const [dana, old] = [cookieOf(await signIn(DANA)), cookieOf(await signIn(OLD))];
    const later = await startAdmin({
      adminTokens: TOKENS.filter(({ token }) => token !== OLD),
      http: PROXIED,
      clock: admin.clock,
    });

    const statuses = [await board(dana, later.app), await board(old, later.app)].map(({ status }) => status);

    expect(statuses).toEqual([200, 401]);
    await later.close();
  });

  it.each([{ 'Sec-Fetch-Site': 'same-site' }, { Origin: 'https://other.parley.test' }, { Origin: 'null' }])(
    'is not ended by a page of another origin: %j',
    async (headers) => {
      const cookie = cookieOf(await signIn(DANA));

      const refused = await request(admin.app)
        .post('/admin/sign-out')
        .set({ ...from(newAddress()), Cookie: cookie, ...headers });

      expect(refused.status).toBe(403);
      expect(errorOf(refused)['code']).toBe('endpoint_not_allowed');
      expect((await board(cookie)).status).toBe(200);
    },
  );

  it('is shown on the form with a button that ends it', async () => {
    const cookie = cookieOf(await signIn(READER));

    const page = await request(admin.app).get('/admin/sign-in').set(from(newAddress())).set('Cookie', cookie);

    expect(page.text).toContain('<b>grafana</b>');
    expect(page.text).toContain('action="/admin/sign-out"');
  });
});

describe('metrics and deep health', () => {
  const SCRAPE = 'scrape-0123456789abcdef0123456789abcdef';
  const scraped = useAdmin({ http: PROXIED, metricsAccess: { isPublic: false, token: SCRAPE } });
  const open = useAdmin({ http: PROXIED, metricsAccess: { isPublic: true } });

  it.each(['/metrics', '/health/deep'])('%s asks strangers for a token, and takes either kind', async (path) => {
    const ask = (token?: string) => {
      const call = request(scraped.app).get(path).set(from(newAddress()));
      return token === undefined ? call : call.auth(token, { type: 'bearer' });
    };
    const answers = [await ask(), await ask('wrong'), await ask(SCRAPE), await ask(ADMIN_TOKEN)];

    expect(answers.map(({ status }) => status)).toEqual([401, 401, 200, 200]);
  });

  it('are open to this machine, but not through a proxy on it, and to all with METRICS_PUBLIC', async () => {
    expect((await request(scraped.app).get('/metrics')).status).toBe(200);
    expect((await request(scraped.app).get('/metrics').set(from('127.0.0.1'))).status).toBe(401);
    expect((await request(open.app).get('/metrics').set(from(newAddress(), 'http'))).status).toBe(200);
  });

  it('are all that METRICS_TOKEN opens', async () => {
    const call = request(scraped.app).get('/admin/v1/tenants').auth(SCRAPE, { type: 'bearer' });
    expect((await call).status).toBe(401);
  });
});
