import { beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { methodsOf } from '../../../api/contract/endpoint.ts';
import { ENDPOINTS } from '../../../api/endpoints.ts';
import { createApiKey, SCOPES } from '../../../shared/domain/api-key.ts';
import {
  call,
  ENDPOINT_NAMES,
  endpointRule,
  hasBody,
  makeResources,
  namesThing,
  pathOf,
  send,
} from '../../support/endpoints.ts';
import type { PathParam } from '../../support/endpoints.ts';
import { refusalOf } from '../../support/refusal.ts';
import { useService, useTenant } from '../../support/use-service.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const UNKNOWN = createApiKey('svc', 'live', 'ThisKeyWasNeverGivenToAny1').value;
let resources: Record<PathParam, string>;
const service = useService({ env: { TRUST_PROXY: 'loopback', PAYMENTS: 'test' } });
const owner = useTenant(service);
const other = useTenant(service);
const suspended = useTenant(service);
beforeAll(async () => {
  await service.admin('patch', `/tenants/${suspended.tenantId}`, { status: 'suspended' });
  resources = await makeResources(service, owner);
});

/** Failed authentications are limited by address: each has its own. */
let lastAddress = 0;
function newAddress(): string {
  lastAddress += 1;
  return `198.51.100.${lastAddress}`;
}

const named = (keep: (rule: ReturnType<typeof endpointRule>) => boolean) =>
  ENDPOINT_NAMES.filter((name) => keep(endpointRule(name)));

describe.each(ENDPOINT_NAMES)('%s', (name) => {
  it('is 401 without a key', async () => {
    const response = await call(service, name, { values: resources }).set('X-Forwarded-For', newAddress());

    expect(refusalOf(response)).toMatchObject({ status: 401, code: 'missing_api_key', type: 'authentication_error' });
  });

  it('is 401 with an unknown key', async () => {
    const response = await call(service, name, { key: UNKNOWN, values: resources }).set(
      'X-Forwarded-For',
      newAddress(),
    );

    expect(refusalOf(response)).toMatchObject({ status: 401, code: 'invalid_api_key' });
  });

  it('is 403 for a suspended tenant', async () => {
    const refused = { status: 403, code: 'account_suspended' };
    expect(refusalOf(await call(service, name, { key: suspended.key, values: resources }))).toMatchObject(refused);
    // The flag in Redis is gone a day later.
    await service.redis.del(service.keyspace.shard(0).blocked(suspended.tenantId));
    expect(refusalOf(await call(service, name, { key: suspended.key, values: resources }))).toMatchObject(refused);
  });
});

describe('a key with every other scope', () => {
  it.each(named(({ scopes }) => scopes !== 'any'))('is 403 for %s', async (name) => {
    const { scopes } = endpointRule(name);
    const others = SCOPES.filter((scope) => scope !== '*' && !scopes.includes(scope));
    const { key } = await service.startTenant({ key: { scopes: others } });

    expect(refusalOf(await call(service, name, { key, values: resources }))).toMatchObject({
      status: 403,
      code: 'endpoint_not_allowed',
      type: 'permission_error',
    });
  });
});

describe("another tenant's id", () => {
  // PUT makes what is not there: the same name with another tenant is another thing.
  it.each(named(({ path, method }) => namesThing(path) && method !== 'PUT'))('is 404 for %s', async (name) => {
    const foreign = await call(service, name, { key: other.key, values: resources });

    expect(refusalOf(foreign)).toMatchObject({ status: 404, code: 'not_found', type: 'not_found_error' });
  });
});

describe('a bad body', () => {
  const withBody = ENDPOINT_NAMES.filter((name) => hasBody(endpointRule(name)));
  const post = (name: (typeof ENDPOINT_NAMES)[number]) =>
    send(service, endpointRule(name).method, pathOf(name, resources)).auth(owner.key, { type: 'bearer' });

  it.each(withBody)('is 400 for %s: malformed JSON', async (name) => {
    expect(refusalOf(await post(name).type('json').send('{"a":'))).toMatchObject({
      status: 400,
      code: 'invalid_request',
    });
  });

  it.each(withBody)('is 400 for %s: nested 32,000 deep, under an Idempotency-Key', async (name) => {
    const deep = `{"a":${'['.repeat(32_000)}${']'.repeat(32_000)}}`;
    const response = await post(name).type('json').set('Idempotency-Key', `deep ${name}`).send(deep);
    expect(refusalOf(response)).toMatchObject({ status: 400, code: 'invalid_request' });
  });

  it.each(withBody)('is 400 for %s: an array', async (name) => {
    expect(refusalOf(await post(name).type('json').send('[]'))).toMatchObject({ status: 400, code: 'invalid_request' });
  });

  it.each(withBody)('is refused by %s: plain text', async (name) => {
    const isChat = endpointRule(name).body?.kind === 'chat';
    expect(refusalOf(await post(name).type('text/plain').send('Hi'))).toMatchObject(
      isChat ? { status: 400, code: 'invalid_request' } : { status: 415, code: 'unsupported_media_type' },
    );
  });

  it.each(withBody.filter((name) => endpointRule(name).body?.kind.endsWith('json') === true))(
    'is 413 for %s: 65 KiB',
    async (name) => {
      const body = JSON.stringify({ name: 'x'.repeat(65 * 1024) });
      expect(refusalOf(await post(name).type('json').send(body))).toMatchObject({
        status: 413,
        code: 'payload_too_large',
      });
    },
  );
});

describe("a key's last request of the minute", () => {
  it.each(named(({ counts }) => counts === 'request'))('was the one before: 429 for %s', async (name) => {
    const { key } = await service.startTenant({ key: { rpm: 1 } });
    await send(service, 'GET', '/models').auth(key, { type: 'bearer' });

    expect(refusalOf(await call(service, name, { key, values: resources }))).toMatchObject({
      status: 429,
      code: 'rpm_exceeded',
      remaining: 0,
    });
  });
});

describe('another method', () => {
  it.each(['/health/live', '/health/ready'])('is 405 on %s, without a key', async (path) => {
    const response = await request(service.app).post(path);

    expect(refusalOf(response)).toMatchObject({ status: 405, code: 'method_not_allowed' });
    expect(response.headers['allow']).toBe('GET, HEAD');
  });

  const paths = [...new Set(ENDPOINT_NAMES.map((name) => endpointRule(name).path))];

  it.each(paths)('is 405 on %s, with the ones that it has', async (path) => {
    const allowed = methodsOf(Object.values(ENDPOINTS), path);
    for (const method of METHODS.filter((each) => !allowed.includes(each))) {
      const url = path.replaceAll(/:(\w+)/g, (_whole, param: PathParam) => encodeURIComponent(resources[param]));
      const response = await send(service, method, url).auth(owner.key, { type: 'bearer' });

      expect(refusalOf(response)).toMatchObject({ status: 405, code: 'method_not_allowed', type: 'not_found_error' });
      // RFC 9110 section 10.2.1: all that the path has. Where there is GET, there is HEAD.
      const all = allowed.includes('GET') ? [...allowed, 'HEAD'] : allowed;
      expect(response.headers['allow']?.split(', ').toSorted()).toEqual(all.toSorted());
    }
  });
});
