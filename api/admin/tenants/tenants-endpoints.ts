import { createHash } from 'node:crypto';

import Joi from 'joi';
import type { Response } from 'express';

import { toTenantChanges, tenantSettingsOf } from '../../../shared/contracts/tenant-fields.ts';
import type { TenantSettingsChanges } from '../../../shared/contracts/tenant-fields.ts';
import { listQuerySchema, parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import type { ListQuery } from '../../../shared/contracts/list-page.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import { toMicro } from '../../../shared/domain/pricing.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type {
  ShardDirectory,
  TenantChanges,
  TenantRow,
  TenantRepository,
} from '../../../shared/mongo/tenants/tenant-repository.ts';
import { CLOSED } from '../../../shared/mongo/tenants/tenant-repository.ts';
import { createKey } from '../../../shared/mongo/tenants/key-repository.ts';
import type { AccessFlags } from '../../../shared/redis/stores/access-flags.ts';
import type { AccountStore } from '../../../shared/redis/stores/account-store.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { created, defineAdminEndpoint, ok, exampleList, json, jsonBody, accepted } from '../../contract/endpoint.ts';
import type { AdminEndpoint, Endpoint, QueryRule } from '../../contract/endpoint.ts';
import { found, readParam } from '../../contract/path-parameters.ts';
import type { Actor, TenantEvents } from '../../contract/tenant-events.ts';
import { readBalance } from '../../resources/billing/billing-status.ts';
import { findTenant } from '../../resources/keys/key-changes.ts';
import { newKeySchema, toKeySettings } from '../../resources/keys/key-settings.ts';
import { keysEndpoints } from '../../resources/keys/keys-endpoints.ts';
import type { KeysDeps } from '../../resources/keys/keys-endpoints.ts';
import { apiKeyWithValueSchema, KEY_WITH_VALUE_EXAMPLE, keyResource } from '../../resources/keys/keys-resource.ts';
import { applyStatus } from './move-steps.ts';
import type { MoveTenant } from './move-tenant.ts';
import {
  TENANT_EXAMPLE,
  newTenantSchema,
  tenantChangesSchema,
  tenantListSchema,
  tenantMoveSchema,
  tenantSchema,
  toTenantResource,
} from './tenants-resource.ts';
import type { AccountRepository } from '../../../shared/mongo/accounts/account-repository.ts';
import { newJob, startJob } from '../../resources/compliance/compliance-jobs.ts';
import type { ComplianceDeps } from '../../resources/compliance/compliance-jobs.ts';
import { deletionsEndpoints, exportsEndpoints } from '../../resources/compliance/compliance-endpoints.ts';

export interface TenantComplianceDeps extends ComplianceDeps, TenantsDeps {}

/** Starts the deletion of everything of a tenant, or finds the one that has been started. */
async function deleteEverything(deps: TenantComplianceDeps, res: Response, actor: Actor): Promise<string> {
  const job = newJob('deletion', { scope: 'tenant' }, { res, principal: actor }, deps.clock.now());
  try {
    await startJob(deps, { ...job, reason: 'Closed' }, undefined, actor);
    return job._id;
  } catch (error) {
    const open = await deps.compliance.jobs.listOpen(actor, 'deletion');
    const own = open.find(({ scope, sole }) => scope === 'tenant' && sole !== undefined);
    if (!(error instanceof ServiceError)) throw error;
    // A deletion that has given up its place may have overlooked that the tenant is closed.
    return own?._id ?? deleteEverything(deps, res, actor);
  }
}

const closeTenant = defineAdminEndpoint({
  method: 'DELETE',
  path: '/tenants/:tenantId',
  tag: 'Tenants',
  summary: 'Close a tenant',
  description:
    'For good. Its keys are refused within a second, and everything of it is deleted but its ledger, usage, purchases and audit log. Export its data first. The deletion is at `Location`. Safe to repeat.',
  answers: { 202: json('The closed tenant.', tenantSchema, ['Location']) },
  examples: { one: { status: 202, answer: { ...TENANT_EXAMPLE, status: 'closed' } } },
  async handle({ res, params, actorIn }, deps: TenantComplianceDeps) {
    const tenant = await findTenant(deps.tenants, params.tenantId);
    const closed = (await deps.tenants.close(tenant._id, deps.clock.now())) ?? tenant;
    await applyStatus(deps, closed);
    const actor = actorIn(tenant._id);
    const deletionId = await deleteEverything(deps, res, actor);
    // Recorded once, however often it is repeated.
    await deps.events.emit(actor, 'tenant.closed', tenant._id);
    return accepted(await toResource(deps, closed), `/admin/v1/tenants/${tenant._id}/deletions/${deletionId}`);
  },
});

/** Exports, deletions and closing of any tenant (docs/spec.md#administration). */
export const tenantComplianceEndpoints = {
  closeTenant,
  listTenantExports: onBehalf(exportsEndpoints.listExports, { summary: 'List exports of a tenant' }),
  createTenantExport: onBehalf(exportsEndpoints.createExport, { summary: "Export a tenant's data" }),
  getTenantExport: onBehalf(exportsEndpoints.getExport, { summary: 'Retrieve an export of a tenant' }),
  downloadTenantExport: onBehalf(exportsEndpoints.downloadExport, { summary: 'Download an export of a tenant' }),
  listTenantDeletions: onBehalf(deletionsEndpoints.listDeletions, { summary: 'List deletions of a tenant' }),
  createTenantDeletion: onBehalf(deletionsEndpoints.createDeletion, { summary: "Delete a tenant's data" }),
  getTenantDeletion: onBehalf(deletionsEndpoints.getDeletion, { summary: 'Retrieve a deletion of a tenant' }),
};

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
    const now = deps.clock.now();
    const { key, value } = await createKey(deps, tenant._id, toKeySettings(body, now), now);
    const { mode, scopes } = key;
    await deps.events.emit(actorIn(tenant._id), 'key.created', key._id, { mode, scopes });
    return created({ ...keyResource.of(key, tenant, now), value });
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

/**
 * The shard of a new tenant: one of those with the fewest tenants, so that newly added shards fill first. Among
 * several, the tenant's id decides, because other processes may choose at the same moment.
 */
export function chooseShard(tenantId: string, tenantsByShard: readonly number[]): number {
  const least = Math.min(...tenantsByShard);
  const emptiest = tenantsByShard.flatMap((count, shard) => (count === least ? [shard] : []));
  const place = createHash('sha256').update(tenantId).digest().readUInt32BE(0) % emptiest.length;
  return emptiest[place] ?? 0;
}

interface CreateTenantDeps {
  tenants: TenantRepository;
  accounts: AccountRepository;
  accountStore: AccountStore;
  shardDirectory: ShardDirectory;
}

interface NewTenant {
  settings: TenantSettingsChanges;
  /** Granted at once. */
  credits: number;
}

/** Writes the tenant's row last: if a step fails, there is no tenant, and the administrator can try again. */
async function insertTenant(deps: CreateTenantDeps, tenant: NewTenant, now: number): Promise<TenantRow> {
  const tenantId = newId('ten');
  const shard = chooseShard(tenantId, await deps.shardDirectory.tenantsByShard());
  await deps.accounts.open(tenantId);
  if (tenant.credits > 0) {
    const { book } = await deps.accounts.book({
      tenantId,
      type: 'grant',
      amountMicro: toMicro(tenant.credits),
      reason: 'Initial credits',
      now,
    });
    await deps.accountStore.publishBalance(shard, tenantId, book);
  }
  const row: TenantRow = {
    ...tenantSettingsOf(tenant.settings),
    _id: tenantId,
    status: 'active',
    shard,
    createdAt: now,
  };
  await deps.tenants.insert(row);
  return row;
}

export interface TenantsDeps extends CreateTenantDeps {
  accessFlags: AccessFlags;
  shardDirectory: ShardDirectory;
  moveTenant: MoveTenant;
  events: TenantEvents;
  clock: Clock;
}

async function toResource(deps: TenantsDeps, row: TenantRow) {
  return toTenantResource(row, await readBalance(deps, row, deps.clock.now()));
}

/** A change of status has its own event type; of changed settings, the event contains only the names. */
async function emitChange(deps: TenantsDeps, actor: Actor, { status, ...settings }: TenantChanges): Promise<void> {
  const { events } = deps;
  const fields = Object.entries(settings).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const change = status === 'suspended' ? 'tenant.suspended' : 'tenant.activated';
  await events.emit(actor, status === undefined ? 'tenant.updated' : change, actor.tenantId, { fields });
}

const createTenant = defineAdminEndpoint({
  method: 'POST',
  path: '/tenants',
  tag: 'Tenants',
  summary: 'Create a tenant',
  body: jsonBody('NewTenant', newTenantSchema),
  answers: { 201: json('The tenant.', tenantSchema) },
  examples: { school: { body: { name: 'Lakeside School', credits: 250_000 }, status: 201, answer: TENANT_EXAMPLE } },
  async handle({ body, actorIn }, deps: TenantsDeps) {
    const { credits = 0 } = body;
    const tenant = await insertTenant(deps, { credits, settings: toTenantChanges(body) }, deps.clock.now());
    await deps.events.emit(actorIn(tenant._id), 'tenant.created', tenant._id, { credits });
    return created(await toResource(deps, tenant));
  },
});

const nameSchema = Joi.object<{ name?: string }, true>({
  name: Joi.string().max(256).description('Only with this text in their names.'),
}).unknown();

const tenantsQuery: QueryRule<{ list: ListQuery; name: string | undefined }> = {
  schemas: [nameSchema, listQuerySchema],
  read(query) {
    const list = parseListQuery(query);
    checkAgainst(nameSchema, query);
    return { list, name: query.name };
  },
};

const listTenants = defineAdminEndpoint({
  method: 'GET',
  path: '/tenants',
  tag: 'Tenants',
  summary: 'List tenants',
  query: tenantsQuery,
  answers: { 200: json('A page of tenants.', tenantListSchema) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(TENANT_EXAMPLE) } },
  async handle({ query: { list: query, name } }, deps: TenantsDeps) {
    const rows = await deps.tenants.list(query, name);
    const data = await Promise.all(rows.slice(0, query.limit).map((row) => toResource(deps, row)));
    const page = toListPage(rows, query.limit, (row) => ({ id: row._id }));
    return ok({ ...page, data });
  },
});

const getTenant = defineAdminEndpoint({
  method: 'GET',
  path: '/tenants/:tenantId',
  tag: 'Tenants',
  summary: 'Retrieve a tenant',
  answers: { 200: json('The tenant.', tenantSchema) },
  examples: { one: { status: 200, answer: TENANT_EXAMPLE } },
  async handle({ params }, deps: TenantsDeps) {
    return ok(await toResource(deps, await findTenant(deps.tenants, params.tenantId)));
  },
});

const updateTenant = defineAdminEndpoint({
  method: 'PATCH',
  path: '/tenants/:tenantId',
  tag: 'Tenants',
  summary: 'Update a tenant',
  description: 'A field that the body omits stays. A suspended tenant is refused everywhere within a second.',
  body: jsonBody('TenantChanges', tenantChangesSchema),
  answers: { 200: json('The updated tenant.', tenantSchema) },
  errors: ['conflict'],
  examples: {
    limits: {
      summary: 'Other limits',
      body: { rpm: 120, monthly_token_budget: 1_000_000 },
      status: 200,
      answer: { ...TENANT_EXAMPLE, rpm: 120, monthly_token_budget: 1_000_000 },
    },
    suspend: {
      summary: 'Suspend',
      body: { status: 'suspended' },
      status: 200,
      answer: { ...TENANT_EXAMPLE, status: 'suspended' },
    },
  },
  async handle({ params, body, actorIn }, deps: TenantsDeps) {
    const { tenantId } = params;
    const changes: TenantChanges = { ...toTenantChanges(body), status: body.status };
    const updated = found(await deps.tenants.update(tenantId, changes), 'tenantId');
    if (updated.closedAt !== undefined) throw new ServiceError('conflict', CLOSED);
    if (changes.status === undefined) await deps.accessFlags.announce(tenantId);
    const tenant = changes.status === undefined ? updated : await applyStatus(deps, updated);
    await emitChange(deps, actorIn(tenantId), changes);
    return ok(await toResource(deps, tenant));
  },
});

const moveTenant = defineAdminEndpoint({
  method: 'POST',
  path: '/tenants/:tenantId/move',
  tag: 'Tenants',
  summary: 'Move a tenant to another shard',
  description:
    'For a tenant that is idle: no request waits or runs, and all that ended is booked. Meanwhile, mostly for less than a second, its requests are 503 with `Retry-After`. Limits, answers and Idempotency-Keys go along. A call that was cut off may be repeated.',
  body: jsonBody('TenantMove', tenantMoveSchema),
  answers: { 200: json('The tenant on its shard.', tenantSchema) },
  errors: ['conflict'],
  examples: { move: { body: { shard: 1 }, status: 200, answer: { ...TENANT_EXAMPLE, shard: 1 } } },
  async handle({ params, body, actorIn }, deps: TenantsDeps) {
    const { tenantId } = params;
    const before = await findTenant(deps.tenants, tenantId);
    const shards = await deps.shardDirectory.list();
    if (!shards.includes(body.shard)) {
      const fault = `\`shard\` must be one of these: ${shards.join(', ')}. For more, raise QUEUE_SHARDS of the ingresses first.`;
      throw new ServiceError('invalid_request', fault, { param: 'shard' });
    }
    const tenant = await deps.moveTenant.move(tenantId, body.shard);
    if (before.shard !== tenant.shard) {
      await deps.events.emit(actorIn(tenantId), 'tenant.moved', tenantId, { from: before.shard, to: tenant.shard });
    }
    return ok(await toResource(deps, tenant));
  },
});

/** The document's words for an endpoint on behalf; absent: as for the tenant's own. */
interface BehalfWords {
  summary: string;
  tag?: 'Tenants' | 'Keys';
  /** '': none. */
  description?: string | undefined;
}

/** A tenant's own endpoint for administrators, whatever the tenant's status, with the reach of a live key. */
function onBehalf<Deps>(
  endpoint: Endpoint<Deps>,
  { summary, tag = 'Tenants', description = endpoint.description }: BehalfWords,
): AdminEndpoint<Deps & { tenants: TenantsDeps['tenants'] }> {
  const { path, handle, method, query, body, answers, errors, examples } = endpoint;
  return {
    method,
    answers,
    examples,
    ...(description === undefined || description === '' ? {} : { description }),
    ...(query === undefined ? {} : { query }),
    ...(body === undefined ? {} : { body }),
    ...(errors === undefined ? {} : { errors }),
    path: `/tenants/:tenantId${path.replace(/^\/compliance/, '')}`,
    tag,
    summary,
    isRemembered: method === 'POST',
    async handle({ actorIn, ...call }, deps) {
      const { _id: tenantId, shard } = await findTenant(deps.tenants, readParam(call.req, 'tenantId'));
      // These endpoints read nothing else of a key. A limit of 0 is none.
      const limits = { rpm: 0, tpm: 0, dailyRequests: 0, chatRpm: 0, streamRpm: 0 };
      const known: Partial<Principal> = { tenantId, shard, mode: 'live', scopes: ['*'], limits };
      const principal = known as Principal;
      const answer = await handle({ ...call, principal, actor: actorIn(tenantId) }, deps);
      if (answer.status === 'sent' || answer.location === undefined) return answer;
      return {
        ...answer,
        location: answer.location.replace('/platform/v1/compliance', `/admin/v1/tenants/${tenantId}`),
      };
    },
  };
}

/** Tenants (docs/spec.md#administration). */
export const tenantsEndpoints = { listTenants, createTenant, getTenant, updateTenant, moveTenant };
