import type { Principal } from '../../../shared/domain/principal.ts';
import { toListPage } from '../../../shared/contracts/list-page.ts';
import { overseenBy } from '../../../shared/contracts/space.ts';
import {
  ACTIVE_KEYS_MAX,
  applyKeyChanges,
  createKey as insertKey,
  isActiveKey,
  KEYS_MADE_PER_MINUTE,
} from '../../../shared/mongo/tenants/key-repository.ts';
import type { KeyChanges, KeyRow } from '../../../shared/mongo/tenants/key-repository.ts';
import type { TenantRow } from '../../../shared/mongo/tenants/tenant-repository.ts';
import { created, defineEndpoint, ok, exampleList, json, jsonBody, listQuery } from '../../contract/endpoint.ts';
import { found } from '../../contract/path-parameters.ts';
import { createdBefore, idForNew } from '../../http/request-context.ts';
import {
  changeKey,
  ownTenant,
  revokeAtOnce,
  rotateKey,
  assertGranted,
  assertMayManage,
  excessOf,
  grantOf,
} from './key-changes.ts';
import type { ChangeKeyDeps, RotateKeyDeps } from './key-changes.ts';
import { keyChangesSchema, newKeySchema, toKeyChanges, toKeySettings } from './key-settings.ts';
import {
  keyResource,
  apiKeyWithValueSchema,
  deletedApiKeySchema,
  KEY_WITH_VALUE_EXAMPLE,
  revokedKey,
} from './keys-resource.ts';

export type KeysDeps = ChangeKeyDeps & RotateKeyDeps;

/** The caller may narrow any key; a change that widens one must stay within the caller's own. */
function assertMayChange(caller: Principal, tenant: TenantRow, before: KeyRow, after: KeyRow, now: number): void {
  const isRevived = !isActiveKey(before, now) && isActiveKey(after, now);
  const [was, will] = [grantOf(before, tenant), grantOf(after, tenant)];
  if (isRevived || excessOf(was, will) !== undefined) assertGranted(caller, will);
}

function changedFields(changes: KeyChanges): string[] {
  return Object.entries(changes).flatMap(([name, value]) => (value === undefined ? [] : [name]));
}

const createKey = defineEndpoint({
  method: 'POST',
  path: '/keys',
  scopes: ['keys'],
  tag: 'Keys',
  summary: 'Create an API key',
  ownLimit: { perMinute: KEYS_MADE_PER_MINUTE, of: 'tenant' },
  description: `A key never grants more than the key that creates it has: mode, scopes, limits and expiry must be within its own (403). A tenant has at most ${ACTIVE_KEYS_MAX} active keys (409), and all its keys together may call this ${KEYS_MADE_PER_MINUTE} times a minute. A replayed answer omits \`value\`.`,
  body: jsonBody('NewApiKey', newKeySchema),
  answers: { 201: json('The key, with its value.', apiKeyWithValueSchema) },
  examples: {
    plain: {
      summary: 'With all scopes',
      body: { name: 'Everything' },
      status: 201,
      answer: { ...KEY_WITH_VALUE_EXAMPLE, name: 'Everything', scopes: ['*'], expires_at: null },
    },
    limited: {
      summary: 'For chat alone, for 30 days',
      body: { name: 'Homework helper', scopes: ['chat', 'chat.stream'], expires_in_seconds: 2_592_000, rpm: 30 },
      status: 201,
      answer: KEY_WITH_VALUE_EXAMPLE,
    },
  },
  async handle({ res, principal, body, actor }, deps: KeysDeps) {
    const now = deps.clock.now();
    const settings = toKeySettings(body, now);
    const tenant = await ownTenant(deps, principal);
    assertGranted(principal, grantOf(settings, tenant));
    const keyId = idForNew(res, 'key');
    const before = await createdBefore(res, () => deps.keys.find(overseenBy(principal), keyId));
    const { key, ...shownOnce } =
      before === undefined ? await insertKey(deps, tenant._id, settings, now, keyId) : { key: before };
    await deps.events.emit(actor, 'key.created', keyId, { mode: key.mode, scopes: key.scopes });
    return created({ ...keyResource.of(key, tenant, now), ...shownOnce });
  },
});

const listKeys = defineEndpoint({
  method: 'GET',
  path: '/keys',
  scopes: ['keys'],
  tag: 'Keys',
  summary: 'List API keys',
  description: 'A test key lists test keys only.',
  query: listQuery,
  answers: { 200: json('A page of keys.', keyResource.listSchema) },
  examples: {
    first: { summary: 'The newest ones', query: { limit: 10 }, status: 200, answer: exampleList(keyResource.example) },
  },
  async handle({ principal, query }, deps: KeysDeps) {
    const tenant = await ownTenant(deps, principal);
    const rows = await deps.keys.list(overseenBy(principal), query);
    const now = deps.clock.now();
    return ok(toListPage(rows, query.limit, (row) => keyResource.of(row, tenant, now)));
  },
});

const getKey = defineEndpoint({
  method: 'GET',
  path: '/keys/:keyId',
  scopes: ['keys'],
  tag: 'Keys',
  summary: 'Retrieve an API key',
  answers: { 200: json('The key.', keyResource.schema) },
  examples: { one: { status: 200, answer: keyResource.example } },
  async handle({ principal, params }, deps: KeysDeps) {
    const tenant = await ownTenant(deps, principal);
    const key = found(await deps.keys.find(overseenBy(principal), params.keyId), 'keyId');
    return ok(keyResource.of(key, tenant, deps.clock.now()));
  },
});

/** OpenRouter's path and meaning: a program, or the console, asks which key it holds and what that may do. */
const getCallingKey = defineEndpoint({
  method: 'GET',
  path: '/key',
  scopes: 'any',
  tag: 'Keys',
  summary: 'Retrieve the calling key',
  description: 'Every valid key may read its own settings: scopes, mode, limits and expiry.',
  answers: { 200: json('The key that the call was made with.', keyResource.schema) },
  examples: { own: { status: 200, answer: keyResource.example } },
  async handle({ principal }, deps: KeysDeps) {
    const tenant = await ownTenant(deps, principal);
    const key = found(await deps.keys.find(overseenBy(principal), principal.keyId), 'keyId');
    return ok(keyResource.of(key, tenant, deps.clock.now()));
  },
});

/** Any key with the scope that oversees a key may narrow or revoke it. */
const updateKey = defineEndpoint({
  method: 'PATCH',
  path: '/keys/:keyId',
  scopes: ['keys'],
  tag: 'Keys',
  summary: 'Update an API key',
  description:
    "`null` removes a setting: no expiry, the tenant's limits. A key keeps its mode; a change that widens it must be within the calling key's own.",
  body: jsonBody('ApiKeyChanges', keyChangesSchema),
  answers: { 200: json('The updated key.', keyResource.schema) },
  errors: ['conflict'],
  examples: {
    rename: {
      summary: 'Another name and limit',
      body: { name: 'Homework helper', rpm: 30 },
      status: 200,
      answer: keyResource.example,
    },
  },
  async handle({ principal, params, body, actor }, deps: KeysDeps) {
    const { keyId } = params;
    const now = deps.clock.now();
    const changes = toKeyChanges(body, now);
    const tenant = await ownTenant(deps, principal);
    const { key, announce } = await changeKey(deps, principal, keyId, now, (row) => {
      const after = applyKeyChanges(row, changes);
      assertMayChange(principal, tenant, row, after, now);
      return { changes, takesBack: excessOf(grantOf(after, tenant), grantOf(row, tenant)) !== undefined };
    });
    await announce();
    await deps.events.emit(actor, 'key.updated', keyId, { fields: changedFields(changes) });
    return ok(keyResource.of(key, tenant, now));
  },
});

const revokeKey = defineEndpoint({
  method: 'DELETE',
  path: '/keys/:keyId',
  scopes: ['keys'],
  tag: 'Keys',
  summary: 'Revoke an API key',
  description: 'The key stops working everywhere within a second. A revoked key stays in the list.',
  answers: { 200: json('The key is revoked.', deletedApiKeySchema) },
  examples: { one: { status: 200, answer: revokedKey(keyResource.example.id) } },
  async handle({ principal, params, actor }, deps: KeysDeps) {
    const { keys, events } = deps;
    const { keyId } = params;
    const { tenantId } = principal;
    const key = found(await keys.find({ tenantId, mode: 'any' }, keyId), 'keyId');
    assertMayManage(principal, key);
    await revokeAtOnce(deps, principal, key);
    await events.emit(actor, 'key.revoked', keyId, { mode: key.mode });
    return ok(revokedKey(keyId));
  },
});

/** The tenant's API keys (docs/spec.md#keys). */
export const keysEndpoints = { createKey, listKeys, getCallingKey, getKey, updateKey, revokeKey, rotateKey };
