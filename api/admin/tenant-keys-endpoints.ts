import { toListPage } from '../../shared/contracts/list-page.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { KeyRow } from '../../shared/mongo/tenants/key-repository.ts';
import { createKey } from '../../shared/mongo/tenants/key-repository.ts';
import { created, defineAdminEndpoint, ok, exampleList, json, jsonBody, listQuery } from '../contract/endpoint.ts';
import { CLOSED } from './tenants/tenants-endpoints.ts';
import { findTenant, revokeAtOnce } from '../resources/keys/key-changes.ts';
import type { ChangeKeyDeps } from '../resources/keys/key-changes.ts';
import { newKeySchema, toKeySettings } from '../resources/keys/key-settings.ts';
import {
  apiKeyListSchema,
  apiKeySchema,
  apiKeyWithValueSchema,
  deletedApiKeySchema,
  KEY_EXAMPLE,
  KEY_WITH_VALUE_EXAMPLE,
  revokedKey,
  toKeyResource,
} from '../resources/keys/keys-resource.ts';

export interface TenantKeysDeps extends ChangeKeyDeps {
  keyPrefix: string;
}

function foundKey(key: KeyRow | undefined): KeyRow {
  if (key === undefined) throw new ServiceError('not_found', 'This tenant has no API key with this id.');
  return key;
}

const createTenantKey = defineAdminEndpoint({
  method: 'POST',
  path: '/tenants/:tenantId/keys',
  tag: 'Keys',
  summary: 'Create an API key of a tenant',
  body: jsonBody('NewApiKey', newKeySchema),
  answers: { 201: json('The key, with its value.', apiKeyWithValueSchema) },
  errors: ['conflict'],
  examples: {
    limited: {
      summary: 'For chat alone, for 30 days',
      body: { name: 'Homework helper', scopes: ['chat', 'chat.stream'], expires_in_seconds: 2_592_000, rpm: 30 },
      status: 201,
      answer: KEY_WITH_VALUE_EXAMPLE,
    },
  },
  async handle({ params, body, actorIn }, deps: TenantKeysDeps) {
    const tenant = await findTenant(deps.tenants, params.tenantId);
    if (tenant.closedAt !== undefined) throw new ServiceError('conflict', CLOSED);
    const now = deps.clock.now();
    const { key, value } = await createKey(deps, tenant._id, toKeySettings(body, now), now);
    const { mode, scopes } = key;
    await deps.events.emit(actorIn(tenant._id), 'key.created', key._id, { mode, scopes });
    return created({ ...toKeyResource(key, tenant, now), value });
  },
});

const listTenantKeys = defineAdminEndpoint({
  method: 'GET',
  path: '/tenants/:tenantId/keys',
  tag: 'Keys',
  summary: 'List API keys of a tenant',
  query: listQuery,
  answers: { 200: json('A page of keys.', apiKeyListSchema) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(KEY_EXAMPLE) } },
  async handle({ params, query }, deps: TenantKeysDeps) {
    const tenant = await findTenant(deps.tenants, params.tenantId);
    const rows = await deps.keys.list({ tenantId: tenant._id, mode: 'any' }, query);
    const now = deps.clock.now();
    return ok(toListPage(rows, query.limit, (row) => toKeyResource(row, tenant, now)));
  },
});

const getTenantKey = defineAdminEndpoint({
  method: 'GET',
  path: '/tenants/:tenantId/keys/:keyId',
  tag: 'Keys',
  summary: 'Retrieve an API key of a tenant',
  answers: { 200: json('The key.', apiKeySchema) },
  examples: { one: { status: 200, answer: KEY_EXAMPLE } },
  async handle({ params }, deps: TenantKeysDeps) {
    const tenant = await findTenant(deps.tenants, params.tenantId);
    const key = foundKey(await deps.keys.find({ tenantId: tenant._id, mode: 'any' }, params.keyId));
    return ok(toKeyResource(key, tenant, deps.clock.now()));
  },
});

const revokeTenantKey = defineAdminEndpoint({
  method: 'DELETE',
  path: '/tenants/:tenantId/keys/:keyId',
  tag: 'Keys',
  summary: 'Revoke an API key of a tenant',
  description: 'The key stops working everywhere within a second. A revoked key stays in the list.',
  answers: { 200: json('The key is revoked.', deletedApiKeySchema) },
  examples: { one: { status: 200, answer: revokedKey(KEY_EXAMPLE.id) } },
  async handle({ params, actorIn }, deps: TenantKeysDeps) {
    const tenant = await findTenant(deps.tenants, params.tenantId);
    const key = foundKey(await deps.keys.find({ tenantId: tenant._id, mode: 'any' }, params.keyId));
    await revokeAtOnce(deps, { tenantId: tenant._id, shard: tenant.shard }, key);
    await deps.events.emit(actorIn(tenant._id), 'key.revoked', key._id, { mode: key.mode });
    return ok(revokedKey(key._id));
  },
});

/** The API keys of any tenant (docs/spec.md#administration). */
export const tenantKeysEndpoints = { listTenantKeys, createTenantKey, getTenantKey, revokeTenantKey };
