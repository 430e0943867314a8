import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { createAdminDocument } from '../../../api/openapi/admin-api.ts';
import { createAnswerChecker } from '../../fuzz/check-answer.ts';
import { examplesOf, writeQuery } from '../../fuzz/examples.ts';
import { endpointsOf } from '../../fuzz/read-document.ts';
import type { ServedDocument } from '../../fuzz/read-document.ts';
import { ADMIN_TOKEN, startAdmin } from '../../support/admin.ts';
import type { TestAdmin } from '../../support/admin.ts';
import { routesOf } from '../../support/routes-of.ts';
import { serveProviderTests } from '../../../shared/redis/stores/provider-tests.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';

// What is served has passed through JSON.
const document = JSON.parse(JSON.stringify(createAdminDocument())) as ServedDocument;
const endpoints = endpointsOf(document);
const checker = createAnswerChecker(document);

let admin: TestAdmin;
beforeAll(async () => {
  admin = await startAdmin();
  const result = { ok: true, status: 200, ms: 212, model: 'gpt-5-mini', message: 'The provider answers.' };
  const fail = (error: unknown) => {
    throw error;
  };
  // No worker is there to make a test.
  await serveProviderTests({ ...admin, subscriber: await admin.subscribe() }, () => Promise.resolve(result), fail);
  const settings = { kind: 'openai', base_url: 'https://api.openai.com/v1' };
  await admin.call('put', '/admin/v1/providers/openai', settings);
  const targets = [{ provider: 'openai', model: 'gpt-5-mini' }];
  await admin.call('put', '/admin/v1/tiers/mobius', { rates: { prompt: 1, completion: 1 }, targets });
  await admin.call('put', '/admin/v1/models/gpt-4o-mini', { tier: 'mobius' });
});
afterAll(() => admin.close());

/** A tenant and a key of its own for each example, the one provider and the one tier for all. */
async function valuesFor(template: string): Promise<Record<string, string>> {
  const tenant = await admin.call('post', '/admin/v1/tenants', { name: 'Lakeside School' });
  const tenantId = String(tenant.body.id);
  const key = await admin.call('post', `/admin/v1/tenants/${tenantId}/keys`, {});
  const path = `/admin/v1/tenants/${tenantId}`;
  // A tenant with an open job cannot be moved.
  const jobs = /export_id|deletion_id/.test(template) ? ['exports', 'deletions'] : [];
  const [made, deletion] = await Promise.all(
    jobs.map((kind) => admin.call('post', `${path}/${kind}`, { scope: 'entity', entity_id: 'x' })),
  );
  const keyId = String(key.body.id);
  const request_id = newId('req');
  const ended = { endpoint: 'chat', status: 'completed', createdAt: Date.now() } as const;
  await admin.models.requestLog.create({ _id: request_id, tenantId, keyId, ...ended });
  // No worker is there to end them, and a tenant with open ones is not moved.
  await admin.models.complianceJobs.updateMany({ tenantId }, { $set: { status: 'completed' } });
  return {
    request_id,
    tenant_id: tenantId,
    name: 'gpt-4o-mini',
    key_id: keyId,
    export_id: String(made?.body.id),
    deletion_id: String(deletion?.body.id),
    provider: 'openai',
    queue: '1:interactive',
    tier: 'mobius',
  };
}

describe('the document of the administration', () => {
  it('is served to the token alone', async () => {
    const response = await request(admin.app).get('/admin/openapi.json').auth(ADMIN_TOKEN, { type: 'bearer' });
    const refused = await request(admin.app).get('/admin/openapi.json').set('Accept', 'application/json');

    expect(JSON.parse(response.text)).toEqual(document);
    expect(response.headers['cache-control']).toBe('no-store');
    expect(refused.status).toBe(401);
  });

  it('has a page beside it, for a browser that has signed in', async () => {
    const page = await request(admin.app).get('/admin/docs/').auth(ADMIN_TOKEN, { type: 'bearer' });
    const stranger = await request(admin.app).get('/admin/docs/').set('Accept', 'text/html');

    expect(page.status).toBe(200);
    expect(page.text).toContain('../openapi.json');
    expect([stranger.status, stranger.headers['location']]).toEqual([303, '/admin/sign-in?to=%2Fadmin%2Fdocs%2F']);
  });

  it('has every route below /admin/v1, and no other', () => {
    const served = routesOf(admin.express).filter((route) => route.includes(' /admin/v1'));
    const described = endpoints.map(({ method, template }) => `${method} ${template}`);

    expect(served.toSorted()).toEqual(described.toSorted());
  });
});

describe('every example of the administration', () => {
  const examples = endpoints.flatMap((endpoint) =>
    examplesOf(document, endpoint).map((example) => [`${endpoint.id} ${example.name}`, endpoint, example] as const),
  );

  it.each(examples)('is answered as the document says: %s', async (_name, endpoint, { query, body, status }) => {
    const values = await valuesFor(endpoint.template);
    const path = endpoint.template.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => values[name] ?? 'x');

    const response = await admin.call(endpoint.method, `${path}${writeQuery(query)}`, body);
    const headers = response.headers as Record<string, string>;
    const answer = { status: response.status, headers, text: response.text };

    expect([answer.status, checker.check(endpoint, answer)]).toEqual([status, []]);
  });
});

describe('every endpoint of the administration', () => {
  it.each(endpoints.map((endpoint) => [endpoint.id, endpoint] as const))(
    'is 401 without the token: %s',
    async (_id, { method, template }) => {
      const response = await request(admin.app)[method](template.replaceAll(/[{}]/g, ''));

      expect(response.status).toBe(401);
    },
  );
});
