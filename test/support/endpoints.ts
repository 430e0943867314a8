import request from 'supertest';

import type { Endpoint, Method, Operation } from '../../api/contract/endpoint.ts';
import type { PathParam as AnyPathParam } from '../../api/contract/path-parameters.ts';
import { ENDPOINTS } from '../../api/endpoints.ts';
import type { EndpointName } from '../../api/endpoints.ts';
import { chatOf, postChat, requestIdOf } from './chat.ts';
import { apiOf } from './tenant-api.ts';
import type { TestService, TestTenant } from './service.ts';

/** The parameters of the public API's paths. */
export type PathParam = Exclude<AnyPathParam, 'tenantId' | 'provider' | 'queue'>;

export function endpointRule(name: EndpointName): Endpoint {
  return ENDPOINTS[name];
}

export function paramsOf(path: string): PathParam[] {
  // The public paths have no others.
  return [...path.matchAll(/[:*](\w+)/g)].map(([, name]) => name as PathParam);
}

/** Whether a path names a thing that somebody made: the models are everybody's. */
export function namesThing(path: string): boolean {
  return paramsOf(path).some((param) => param !== 'model');
}

export const ENDPOINT_NAMES = Object.keys(ENDPOINTS) as EndpointName[];

/** A receiver that no resolver knows. */
const WEBHOOK = { url: 'https://receiver.invalid/hook', events: ['key.created'] };

async function makeWebhook(service: TestService, { key }: TestTenant): Promise<string> {
  const { body } = await apiOf(service, key)('post', '/webhooks', WEBHOOK);
  return String(body.id);
}

const NOBODY = { scope: 'entity', entity_id: 'nobody' };

const CHECKOUT = { credits: 1_000, success_url: 'https://shop.test/ok', cancel_url: 'https://shop.test/no' };

const BATCH = { requests: [{ custom_id: 'first', body: chatOf('Hi') }] };

/** Makes one of a tenant's things for each parameter of a path: a new parameter does not compile without its own. */
const MAKERS: Record<PathParam, (service: TestService, owner: TestTenant) => Promise<string>> = {
  requestId: async (service, { key }) => requestIdOf(await postChat(service.app, key, chatOf('Hi'))),
  batchId: async (service, { key }) => {
    const { body } = await apiOf(service, key)('post', '/batches', BATCH);
    return String(body.id);
  },
  keyId: (_service, { keyId }) => Promise.resolve(keyId),
  entityId: async (service, { key }) => {
    await apiOf(service, key)('put', '/entities/pupil%2F1', {});
    return 'pupil/1';
  },
  webhookId: makeWebhook,
  deliveryId: async (service, owner) => {
    const webhookId = await makeWebhook(service, owner);
    const { body } = await apiOf(service, owner.key)('post', `/webhooks/${webhookId}/test`);
    return String(body.id);
  },
  exportId: async (service, { key }) => {
    const { body } = await apiOf(service, key)('post', '/compliance/exports', NOBODY);
    return String(body.id);
  },
  deletionId: async (service, { key }) => {
    const { body } = await apiOf(service, key)('post', '/compliance/deletions', NOBODY);
    return String(body.id);
  },
  checkoutId: async (service, { key }) => {
    const { body } = await apiOf(service, key)('post', '/billing/checkout', CHECKOUT);
    return String(body.id);
  },
  tier: () => Promise.resolve('mobius'),
  model: () => Promise.resolve('mobius'),
  name: () => Promise.resolve('gpt-4o-mini'),
};

/** The body of an operation's first example. */
function bodyOf({ examples }: Operation): object {
  const [first] = Object.values(examples);
  return typeof first?.body === 'object' && first.body !== null ? first.body : {};
}

/** Whether an operation reads a JSON body. */
export function hasBody({ body }: Operation): boolean {
  return body !== undefined;
}

/** The endpoint's path with every parameter taken from `values`. */
export function pathOf(name: EndpointName, values: Partial<Record<PathParam, string>>): string {
  return endpointRule(name).path.replaceAll(/[:*](\w+)/g, (_whole, param: PathParam) =>
    encodeURIComponent(values[param] ?? 'x'),
  );
}

/** One of the owner's things for each parameter: all of the table's unless they are named. */
export async function makeResources<Name extends PathParam = PathParam>(
  service: TestService,
  owner: TestTenant,
  // Without names, Name is every parameter.
  names: readonly Name[] = Object.keys(MAKERS) as Name[],
): Promise<Record<Name, string>> {
  const made = await Promise.all(names.map(async (name) => [name, await MAKERS[name](service, owner)] as const));
  return Object.fromEntries(made) as Record<Name, string>;
}

export function send(service: TestService, method: Method, path: string): request.Test {
  const agent = request(service.app);
  const url = `/platform/v1${path}`;
  switch (method) {
    case 'GET':
      return agent.get(url);
    case 'POST':
      return agent.post(url);
    case 'PUT':
      return agent.put(url);
    case 'PATCH':
      return agent.patch(url);
    case 'DELETE':
      return agent.delete(url);
  }
}

/** A call of an endpoint with its least valid body. */
export function call(
  service: TestService,
  name: EndpointName,
  { key, values = {} }: { key?: string; values?: Partial<Record<PathParam, string>> },
): request.Test {
  const rule = endpointRule(name);
  const sent = send(service, rule.method, pathOf(name, values));
  if (key !== undefined) void sent.auth(key, { type: 'bearer' });
  return hasBody(rule) ? sent.send(bodyOf(rule)) : sent;
}
