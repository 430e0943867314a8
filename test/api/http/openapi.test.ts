import { beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { createDocument } from '../../../api/openapi/public-api.ts';
import { createAnswerChecker } from '../../fuzz/check-answer.ts';
import { examplesOf } from '../../fuzz/examples.ts';
import { endpointsOf } from '../../fuzz/read-document.ts';
import type { Endpoint, ServedDocument } from '../../fuzz/read-document.ts';
import type { EndpointName } from '../../../api/endpoints.ts';
import { endpointRule, makeResources, paramsOf } from '../../support/endpoints.ts';
import type { PathParam } from '../../support/endpoints.ts';
import { sendExample, wireValues } from '../../support/openapi.ts';
import { expectUniformHeaders, refusalOf } from '../../support/refusal.ts';
import { routesOf } from '../../support/routes-of.ts';
import type { TestTenant } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useTenant } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

// What is served has passed through JSON.
const document = JSON.parse(JSON.stringify(createDocument())) as ServedDocument;
const endpoints = endpointsOf(document);
const checker = createAnswerChecker(document);
let readValues: Record<string, string>;
const service = useService({ env: { PAYMENTS: 'test' } });
const reader = useTenant(service);
beforeAll(async () => {
  readValues = await valuesFor(reader);
});

describe.each(['/openapi.json', '/platform/v1/openapi.json'])('GET %s', (path) => {
  it('is the document, for anybody', async () => {
    const response = await request(service.app).get(path);

    expect(response.status).toBe(200);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.headers['cache-control']).toBe('public, max-age=300');
    expectUniformHeaders(response);
    expect(JSON.parse(response.text)).toEqual(document);
  });

  it('is 304 for who has it', async () => {
    const first = await request(service.app).get(path);
    const second = await request(service.app).get(path).set('If-None-Match', String(first.headers['etag']));

    expect(second.status).toBe(304);
    expect(second.text).toBe('');
    expectUniformHeaders(second);
  });

  it('is whole for who says to have anything', async () => {
    const response = await request(service.app).get(path).set('If-None-Match', '*');

    expect(response.status).toBe(200);
  });

  it('answers GET alone', async () => {
    const response = await request(service.app).post(path);

    expect(refusalOf(response)).toMatchObject({ status: 405, code: 'method_not_allowed' });
    expect(response.headers['allow']).toBe('GET, HEAD');
  });
});

describe('the routes of the app', () => {
  /** Pages for people, and what a payment provider calls. */
  const APART =
    /^get \/(?:console.*)?$|^get \/docs|^(get|post) \/platform\/v1\/billing\/test_payment\/|^get \/platform\/v1\/openapi\.json$/;

  it('are those of the document, both ways', () => {
    const served = routesOf(service.express).filter((route) => !APART.test(route));
    const described = endpoints.map(({ method, template }) => `${method} ${template}`);

    expect(served.toSorted()).toEqual(described.toSorted());
  });
});

describe('every example', () => {
  const examples = endpoints.flatMap((endpoint) =>
    examplesOf(document, endpoint)
      // Readiness is only taken away together with the stores (endpoints.mongo-away.test.ts).
      .filter(({ status }) => endpoint.needsKey || status === 200)
      .map((example) => [`${endpoint.id} ${example.name}`, endpoint, example] as const),
  );

  /** A delivery under way cannot be asked for again. */
  async function untilAttempted(key: string, { webhook_id: webhookId = '' }: Record<string, string>): Promise<void> {
    await waitFor(async () => {
      const { body } = await apiOf(service, key)('get', `/webhooks/${webhookId}/deliveries`);
      return (body.data as { attempts: unknown[] }[]).every(({ attempts }) => attempts.length > 0) || undefined;
    }, 'the first attempt');
  }

  /** What only reads shares a tenant that has one of everything; what changes something has a tenant of its own. */
  async function ownerOf({ id, method }: Endpoint): Promise<{ key: string; values: Record<string, string> }> {
    if (method === 'get') return { key: reader.key, values: readValues };
    const owner = await service.startTenant();
    // Whatever takes no key only reads.
    return { key: owner.key, values: await valuesFor(owner, paramsOf(endpointRule(id as EndpointName).path)) };
  }

  it.each(examples)('is answered as the document says: %s', async (_name, endpoint, example) => {
    const owner = await ownerOf(endpoint);
    if (endpoint.id === 'redeliver') await untilAttempted(owner.key, owner.values);

    const answer = await sendExample(service, endpoint, example, owner);

    expect([answer.status, checker.check(endpoint, answer)]).toEqual([example.status, []]);
  });
});

/** One of the owner's things for each parameter, by their names on the wire; a delivery comes with its webhook. */
async function valuesFor(owner: TestTenant, names?: readonly PathParam[]): Promise<Record<string, string>> {
  const made: Partial<Record<PathParam, string>> = await makeResources(service, owner, names);
  const { deliveryId } = made;
  return wireValues(deliveryId === undefined ? made : { ...made, webhookId: await webhookOf(owner.key, deliveryId) });
}

/** The webhook that a delivery is of: the makers make one for each. */
async function webhookOf(key: string, deliveryId: string): Promise<string> {
  const { body } = await apiOf(service, key)('get', '/webhooks');
  for (const { id } of body.data as { id: string }[]) {
    const found = await apiOf(service, key)('get', `/webhooks/${id}/deliveries/${deliveryId}`);
    if (found.status === 200) return id;
  }
  throw new Error('No webhook has this delivery.');
}
