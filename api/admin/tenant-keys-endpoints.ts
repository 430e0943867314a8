import { ServiceError } from '../../shared/errors/service-error.ts';
import { createKey } from '../../shared/mongo/tenants/key-repository.ts';
import { created, defineAdminEndpoint, json, jsonBody } from '../contract/endpoint.ts';
import { findTenant } from '../resources/keys/key-changes.ts';
import { newKeySchema, toKeySettings } from '../resources/keys/key-settings.ts';
import { keysEndpoints } from '../resources/keys/keys-endpoints.ts';
import type { KeysDeps } from '../resources/keys/keys-endpoints.ts';
import { apiKeyWithValueSchema, KEY_WITH_VALUE_EXAMPLE, toKeyResource } from '../resources/keys/keys-resource.ts';
import { CLOSED, onBehalf } from './tenants/tenants-endpoints.ts';

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
  async handle({ params, body, actorIn }, deps: KeysDeps) {
    const tenant = await findTenant(deps.tenants, params.tenantId);
    if (tenant.closedAt !== undefined) throw new ServiceError('conflict', CLOSED);
    const now = deps.clock.now();
    const { key, value } = await createKey(deps, tenant._id, toKeySettings(body, now), now);
    const { mode, scopes } = key;
    await deps.events.emit(actorIn(tenant._id), 'key.created', key._id, { mode, scopes });
    return created({ ...toKeyResource(key, tenant, now), value });
  },
});

/** The API keys of any tenant (docs/spec.md#administration). */
export const tenantKeysEndpoints = {
  listTenantKeys: onBehalf(keysEndpoints.listKeys, {
    summary: 'List API keys of a tenant',
    tag: 'Keys',
    description: '',
  }),
  createTenantKey,
  getTenantKey: onBehalf(keysEndpoints.getKey, { summary: 'Retrieve an API key of a tenant', tag: 'Keys' }),
  updateTenantKey: onBehalf(keysEndpoints.updateKey, {
    summary: 'Update an API key of a tenant',
    tag: 'Keys',
    description: "`null` removes a setting: no expiry, the tenant's limits. A key keeps its mode.",
  }),
  revokeTenantKey: onBehalf(keysEndpoints.revokeKey, { summary: 'Revoke an API key of a tenant', tag: 'Keys' }),
};
