import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { createServer as createTlsServer, request as requestTls } from 'node:https';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { RESPONSE_HEADERS } from '../../../api/contract/headers.ts';
import { serve } from '../../../api/http/serve.ts';
import { createCloser } from '../../../shared/lifecycle/closer.ts';
import { chatOf, postChat } from '../../support/chat.ts';
import { expectUniformHeaders, refusalOf } from '../../support/refusal.ts';
import { startService } from '../../support/service.ts';
import type { TestService } from '../../support/service.ts';

const TLS_DIR = join(import.meta.dirname, '..', '..', 'support', 'tls');
/** Made for these tests, for localhost. */
const TLS = { certFile: join(TLS_DIR, 'localhost.cert.pem'), keyFile: join(TLS_DIR, 'localhost.key.pem') };
const CERT = readFileSync(TLS.certFile);
const STRANGER = '203.0.113.9';

const opened: { close(): unknown }[] = [];
afterAll(async () => {
  for (const one of opened.reverse()) await one.close();
});

async function start(env: Record<string, string>): Promise<TestService> {
  const service = await startService({ env: { REQUIRE_HTTPS: 'true', ...env }, workers: 0 });
  opened.push(service);
  return service;
}

/** Listens as if every connection came from `address`: tests have no other machine. */
async function listenAsFrom<S extends Server>(
  server: S,
  event: 'connection' | 'secureConnection',
  address: string,
): Promise<S> {
  server.on(event, (socket: Socket) => {
    Object.defineProperty(socket, 'remoteAddress', { value: address });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  opened.push({ close: () => server.close() });
  return server;
}

/** The status of a TLS request that trusts the tests' certificate, with its text. */
function postOverTls(port: number): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const options = {
      port,
      host: '127.0.0.1',
      path: '/platform/v1/chat',
      method: 'POST',
      ca: CERT,
      agent: false,
    } as const;
    const sent = requestTls(options, (res) => {
      let text = '';
      res.on('data', (part: Buffer) => (text += part.toString()));
      res.on('end', () => {
        resolve({ status: res.statusCode, text });
      });
    });
    sent.on('error', reject);
    sent.end();
  });
}

describe('behind a trusted proxy', () => {
  let service: TestService;
  let key: string;
  beforeAll(async () => {
    service = await start({ TRUST_PROXY: 'loopback' });
    ({ key } = await service.startTenant());
  });
  const post = (headers: Record<string, string>) =>
    postChat(service.app, key, '{').set('X-Forwarded-For', STRANGER).set(headers);

  it('a request that came as http is refused before anything else, and says what is required', async () => {
    for (const headers of [{}, { 'X-Forwarded-Proto': 'http' }, { 'X-Forwarded-Proto': 'http, https' }]) {
      expect(refusalOf(await post(headers))).toMatchObject({
        status: 400,
        code: 'invalid_request',
        message: expect.stringContaining('HTTPS is required'),
      });
    }
  });

  it('a request that came as https is served', async () => {
    const response = await post({ 'X-Forwarded-Proto': 'https' });
    expect(refusalOf(response).message).toContain('not valid JSON');
    expect(response.headers['strict-transport-security']).toBe('max-age=31536000');
    expect(response.headers['x-content-type-options']).toBe('nosniff');
  });

  it('a request from this machine is served as it is', async () => {
    const response = await postChat(service.app, key, '{');
    expect(refusalOf(response).message).toContain('not valid JSON');
    expect(response.headers['strict-transport-security']).toBeUndefined();
  });

  it.each(['/health/live', '/health/live/', '/Health/Live'])('health answers without HTTPS: %s', async (path) => {
    expect((await request(service.app).get(path).set('X-Forwarded-For', STRANGER)).status).toBe(200);
  });

  it('health that came as https says that it is to come so again', async () => {
    const asHttps = { 'X-Forwarded-For': STRANGER, 'X-Forwarded-Proto': 'https' };
    const { headers } = await request(service.app).get('/health/live').set(asHttps);
    expect(headers['strict-transport-security']).toBe('max-age=31536000');
  });

  it.each(['/', '/health', '/health/', '/health/x', '/health/live/x'])(
    'an unknown path is refused like any other: %s',
    async (path) => {
      const refusal = refusalOf(await request(service.app).get(path).set('X-Forwarded-For', STRANGER));
      expect(refusal).toMatchObject({ status: 400, message: expect.stringContaining('HTTPS is required') });
    },
  );
});

describe('behind nobody who is trusted', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await start({});
  });

  it('a stranger who says that it was https is not believed', async () => {
    const server = await listenAsFrom(createServer(service.express), 'connection', STRANGER);

    const claims = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-For': '127.0.0.1' };
    const response = await request(server).post('/platform/v1/chat').set(claims);

    expect(refusalOf(response)).toMatchObject({ status: 400, message: expect.stringContaining('HTTPS is required') });
  });

  it.each(['X-Forwarded-For', 'X-Forwarded-Proto', 'Forwarded'])(
    'a request that a proxy on this machine passes on does not count as from here: %s',
    async (name) => {
      const response = await request(service.app).post('/platform/v1/chat').set(name, 'https');

      expect(refusalOf(response)).toMatchObject({ status: 400, message: expect.stringContaining('HTTPS is required') });
    },
  );

  it('failed authentications count for the address that connects, whatever it claims', async () => {
    const plain = await start({ REQUIRE_HTTPS: 'false' });
    const server = await listenAsFrom(createServer(plain.express), 'connection', '::1');
    const call = () => request(server).post('/platform/v1/chat').set('X-Forwarded-For', STRANGER);

    const [first, second] = [refusalOf(await call()), refusalOf(await call().set('X-Forwarded-For', '198.51.100.3'))];

    expect(second.remaining).toBe(first.remaining - 1);
  });

  it('a stranger who comes over TLS is served', async () => {
    const tls = createTlsServer({ cert: CERT, key: readFileSync(TLS.keyFile) }, service.express);
    const server = await listenAsFrom(tls, 'secureConnection', STRANGER);

    const { status, text } = await postOverTls((server.address() as AddressInfo).port);

    expect([status, text]).toEqual([401, expect.stringContaining('missing_api_key')]);
  });

  it('TLS_CERT_FILE and TLS_KEY_FILE make the ingress itself speak HTTPS', async () => {
    const closer = createCloser(() => undefined);
    const probe = await listenAsFrom(createServer(), 'connection', STRANGER);
    const { port } = probe.address() as AddressInfo;
    await new Promise((resolve) => probe.close(resolve));

    const options = { port, host: '127.0.0.1', setting: 'PORT', graceMs: 0, tls: TLS, headersMs: 500 };
    await serve(service.express, options, closer);

    expect((await postOverTls(port)).status).toBe(401);
    // One that says nothing holds its place no longer than a request's head may take.
    await once(connect(port, '127.0.0.1'), 'close');
    await closer.close();
  });
});

describe('without REQUIRE_HTTPS', () => {
  it('a plain request of a stranger is served', async () => {
    const service = await start({ REQUIRE_HTTPS: 'false', TRUST_PROXY: 'loopback' });
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, {}).set('X-Forwarded-For', STRANGER);

    expect(refusalOf(response).param).toBe('messages');
  });
});

describe('CORS_ORIGINS', () => {
  const ORIGIN = 'https://app.example.com';
  let service: TestService;
  beforeAll(async () => {
    service = await start({ CORS_ORIGINS: `${ORIGIN}, http://localhost:3000` });
  });
  const preflight = (origin: string) =>
    request(service.app)
      .options('/platform/v1/chat')
      .set({
        Origin: origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization,content-type',
      });

  it('lets pages of these origins ask and read, refusals and their headers included', async () => {
    const allowed = await preflight(ORIGIN);
    expect(allowed.status).toBe(204);
    expectUniformHeaders(allowed);
    expect(allowed.headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-headers': 'authorization,content-type',
      'access-control-allow-methods': expect.stringContaining('POST'),
    });

    const refused = await request(service.app).post('/platform/v1/chat').set('Origin', ORIGIN).send(chatOf('Hi'));
    expect(refusalOf(refused).status).toBe(401);
    expect(refused.headers['access-control-allow-origin']).toBe(ORIGIN);
    expect(refused.headers['vary']).toContain('Origin');
    const exposed = String(refused.headers['access-control-expose-headers']).split(',');
    for (const name of ['X-Request-Id', 'X-RateLimit-Remaining-Requests', 'WWW-Authenticate'])
      expect([exposed.includes(name), refused.headers[name.toLowerCase()]]).toEqual([true, expect.any(String)]);
    for (const name of ['Allow', ...Object.keys(RESPONSE_HEADERS)]) expect(exposed).toContain(name);
  });

  it('allows no other origin, and never credentials', async () => {
    for (const origin of ['https://evil.example.com', 'https://app.example.com.evil.example', 'null']) {
      const { headers } = await preflight(origin);
      expect(headers['access-control-allow-origin']).toBeUndefined();
      expect(headers['access-control-allow-credentials']).toBeUndefined();
    }
  });

  it('CORS_ORIGINS is none by default', async () => {
    const plain = await start({});

    const response = await request(plain.app).options('/platform/v1/chat').set('Origin', ORIGIN);

    expect([response.status, response.headers['access-control-allow-origin']]).toEqual([405, undefined]);
  });
});
