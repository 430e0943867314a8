import type { Response } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import { accepted, defineAdminEndpoint, json } from '../../contract/endpoint.ts';
import type { Actor } from '../../contract/tenant-events.ts';
import { OPEN_LISTED_MAX, newJob, startJob } from '../../resources/compliance/compliance-jobs.ts';
import type { ComplianceDeps } from '../../resources/compliance/compliance-jobs.ts';
import { deletionsEndpoints, exportsEndpoints } from '../../resources/compliance/compliance-endpoints.ts';
import { findTenant } from '../../resources/keys/key-changes.ts';
import { applyStatus } from './move-steps.ts';
import { TENANT_EXAMPLE, tenantSchema } from './tenants-resource.ts';
import { onBehalf, toResource } from './tenants-endpoints.ts';
import type { TenantsDeps } from './tenants-endpoints.ts';

export interface TenantComplianceDeps extends ComplianceDeps, TenantsDeps {}

/** Starts the deletion of everything of a tenant, or finds the one that has been started. */
async function deleteEverything(deps: TenantComplianceDeps, res: Response, actor: Actor): Promise<string> {
  const job = newJob('deletion', { scope: 'tenant' }, { res, principal: actor }, deps.clock.now());
  try {
    await startJob(deps, { ...job, reason: 'Closed' }, undefined, actor);
    return job._id;
  } catch (error) {
    const open = await deps.compliance.jobs.listOpen(actor, 'deletion', OPEN_LISTED_MAX);
    const own = open.find(({ scope }) => scope === 'tenant');
    if (!(error instanceof ServiceError) || own === undefined) throw error;
    return own._id;
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
