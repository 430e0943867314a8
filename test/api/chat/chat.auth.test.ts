import { connect } from 'node:net';

import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { createApiKey } from '../../../shared/domain/api-key.ts';
import { chatOf, postChat, postStream, waitFor, waitUntil } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { useService, useTenant } from '../../support/use-service.ts';

const PATH = '/platform/v1/chat';
/** Right in form and checksum, and nobody's. */
const UNKNOWN = createApiKey('svc', 'live', 'ThisKeyWasNeverGivenToAny1').value;
const service = useService({ env: { TRUST_PROXY: 'loopback' } });
const tenant = useTenant(service);

/** Failed authentications are limited by address: each test has its own. */
let lastAddress = 0;
function newAddress(): string {
  lastAddress += 1;
  return `198.51.100.${String(lastAddress)}`;
}

function postWith(authorization: string | undefined, address = newAddress()): request.Test {
  const call = request(service.app).post(PATH).set('X-Forwarded-For', address).send(chatOf('Hi'));
  return authorization === undefined ? call : call.set('Authorization', authorization);
}

describe('the Authorization header', () => {
  it('is told what is wrong with its key: a slip of the pen, or no key at all', async () => {
    const slip = tenant.key.slice(0, -1) + (tenant.key.endsWith('a') ? 'b' : 'a');
    expect(refusalOf(await postWith(`Bearer ${slip}`)).message).toContain(
      'a character is mistyped, missing or too many',
    );
    expect(refusalOf(await postWith('Bearer sk-proj-abc')).message).toContain('keys look like svc_sk_live_');
  });

  it.each([
    ['none', undefined],
    ['an empty one', ''],
    ['a scheme alone', 'Bearer'],
    ['a scheme and spaces', 'Bearer   '],
  ])('the Authorization header is missing with %s', async (_what, header) => {
    expect(refusalOf(await postWith(header))).toMatchObject({
      status: 401,
      code: 'missing_api_key',
      type: 'authentication_error',
      message: expect.stringContaining('Authorization: Bearer'),
    });
  });

  it.each<[string, (key: string) => string]>([
    ['another scheme', (key) => `Basic ${Buffer.from(`${key}:`).toString('base64')}`],
    ['no scheme', (key) => key],
    ['a scheme that begins alike', (key) => `Bearers ${key}`],
    ['two keys', (key) => `Bearer ${key} ${key}`],
    ['two keys with a comma', (key) => `Bearer ${key},${key}`],
    ['quotes', (key) => `Bearer "${key}"`],
    ['8,000 characters', (key) => `Bearer ${key.repeat(180)}`],
    ['a wrong checksum', (key) => `Bearer ${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`],
    ['an unknown key', () => `Bearer ${UNKNOWN}`],
    ['the administrator’s token', () => `Bearer an-administrator-token-of-tests-0123456789`],
  ])('the Authorization header is invalid with %s', async (_what, headerOf) => {
    expect(refusalOf(await postWith(headerOf(tenant.key)))).toMatchObject({
      status: 401,
      code: 'invalid_api_key',
      type: 'authentication_error',
    });
  });

  it.each(['bearer', 'BEARER', 'Bearer  '])('the Authorization header takes the scheme as %s', async (scheme) => {
    expect((await postWith(`${scheme} ${tenant.key}`)).status).toBe(200);
  });

  it('shows no part of a key in the refusal or in the log', async () => {
    const response = await postWith(`Bearer ${UNKNOWN}`);

    expect(response.text).not.toContain(UNKNOWN.slice(12, 20));
    expect(JSON.stringify(service.log.lines)).not.toContain(UNKNOWN.slice(12, 20));
  });
});

describe('a key', () => {
  it('expires while it is in use, though it is cached', async () => {
    const { tenantId } = await service.startTenant();
    const { body } = await service.admin('post', `/tenants/${tenantId}/keys`, { name: 'short', expires_in_seconds: 1 });
    const send = () => postChat(service.app, String(body.value), chatOf('Hi'));
    expect((await send()).status).toBe(200);

    const refused = await waitFor(async () => {
      const response = await send();
      return response.status === 200 ? undefined : response;
    }, 'the expiry');
    expect(refusalOf(refused)).toMatchObject({ status: 401, code: 'expired_api_key', type: 'authentication_error' });
  });

  it('without the scope is told so, of a suspended tenant, too', async () => {
    const { tenantId } = await service.startTenant();
    const { body } = await service.admin('post', `/tenants/${tenantId}/keys`, { name: 'usage', scopes: ['usage'] });
    await service.admin('patch', `/tenants/${tenantId}`, { status: 'suspended' });

    const refused = await postChat(service.app, String(body.value), chatOf('Hi'));

    expect(refusalOf(refused)).toMatchObject({ status: 403, code: 'endpoint_not_allowed' });
  });

  it('of a suspended tenant is refused by the first request after it, and accepted after the end of it', async () => {
    const { key, tenantId } = await service.startTenant();
    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);

    await service.admin('patch', `/tenants/${tenantId}`, { status: 'suspended' });
    const refused = await postChat(service.app, key, chatOf('Hi'));
    await service.admin('patch', `/tenants/${tenantId}`, { status: 'active' });

    expect(refusalOf(refused)).toMatchObject({ status: 403, code: 'account_suspended', type: 'permission_error' });
    await waitUntil(
      async () => (await postChat(service.app, key, chatOf('Hi'))).status === 200,
      'the end of the suspension',
      1_000,
    );
  });

  it.each([
    [['usage'], 403, 403],
    [['chat'], 200, 403],
    [['chat.stream'], 403, 200],
    [['chat', 'chat.stream'], 200, 200],
    [['*'], 200, 200],
  ])('with the scopes %p is answered %i by /chat and %i by /chat/stream', async (scopes, chat, stream) => {
    const { key } = await service.startTenant({ key: { scopes } });

    const complete = await postChat(service.app, key, chatOf('Hi'));
    const streamed = await postStream(service.app, key, chatOf('Hi'));

    expect([complete.status, streamed.status]).toEqual([chat, stream]);
    if (chat === 403)
      expect(refusalOf(complete)).toMatchObject({
        code: 'endpoint_not_allowed',
        type: 'permission_error',
        message: expect.stringContaining('`chat`'),
      });
  });
});

describe('failed authentications', () => {
  it('are limited to 60 a minute and address; other addresses and valid keys go on', async () => {
    const address = newAddress();
    const kinds = [undefined, 'Basic abc', `Bearer ${UNKNOWN}`];
    const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => postWith(kinds[index % 3], address)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    expect(answers.map((answer) => refusalOf(answer).remaining).sort((a, b) => a - b)).toEqual([...Array(60).keys()]);

    const refused = refusalOf(await postWith(undefined, address));

    expect(refused).toMatchObject({ status: 429, code: 'rpm_exceeded', limit: 60, remaining: 0 });
    expect(refused.message).toContain('60 failed authentications');
    expect(refused.retryAfter).toBeLessThanOrEqual(60);
    expect((await postWith(undefined)).status).toBe(401);
    expect((await postWith(`Bearer ${tenant.key}`, address)).status).toBe(200);

    // It is looked up again after a change, and an address over its limit has one look-up a second, which is taken.
    await service.admin('patch', `/tenants/${tenant.tenantId}`, { weight: 2 });
    expect((await postWith(`Bearer ${UNKNOWN}`, address)).status).toBe(429);
    expect((await postWith(`Bearer ${tenant.key}`, address)).status).toBe(200);
  });
});

describe('a request without a valid key', () => {
  it('a request without a valid key is answered before its body has come', async () => {
    const { port } = new URL(service.url);
    const socket = connect(Number(port), '127.0.0.1');
    const head = await new Promise<string>((resolve, reject) => {
      socket.on('error', reject);
      socket.once('data', (bytes) => {
        resolve(bytes.toString());
      });
      socket.write(
        `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20000000\r\n`,
      );
      socket.write(`X-Forwarded-For: ${newAddress()}\r\n\r\n{`);
    });
    socket.destroy();

    expect(head).toMatch(/^HTTP\/1\.1 401 /);
  });
});
