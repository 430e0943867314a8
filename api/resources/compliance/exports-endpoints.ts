import Joi from 'joi';

import { toListPage } from '../../../shared/contracts/list-page.ts';
import { OPEN_MAX } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import { ARCHIVES_KEPT } from '../../../shared/mongo/compliance/export-archive-repository.ts';
import { accepted, defineEndpoint, ok, exampleList, json, jsonBody, listQuery } from '../../contract/endpoint.ts';
import { findJob, newJob, startJob, startedBefore, subjectFields } from './compliance-jobs.ts';
import type { ComplianceDeps, SubjectBody } from './compliance-jobs.ts';
import {
  COMPLETE_EXPORT_EXAMPLE,
  EXPORT_EXAMPLE,
  exportListSchema,
  exportSchema,
  toExportResource,
} from './compliance-resource.ts';
import { downloadExport } from './download-export.ts';

const newExportSchema = Joi.object<SubjectBody, true>(subjectFields).required();

const createExport = defineEndpoint({
  method: 'POST',
  path: '/compliance/exports',
  scopes: ['compliance'],
  tag: 'Compliance',
  summary: 'Create an export of data',
  description: `Of one entity, or of the whole tenant: of live data with a live key, of test data with a test key. At most ${OPEN_MAX.export} of each are in progress (409). Files are kept for seven days, of each kind the latest ${ARCHIVES_KEPT.tenant} of the whole tenant and the latest ${ARCHIVES_KEPT.entity} of entities.`,
  body: jsonBody('NewComplianceExport', newExportSchema),
  answers: { 202: json('The export; its state is at `Location`.', exportSchema, ['Location']) },
  examples: {
    entity: {
      summary: 'Of one entity',
      body: { scope: 'entity', entity_id: 'pupil-7' },
      status: 202,
      answer: EXPORT_EXAMPLE,
    },
    tenant: {
      summary: 'Of the tenant',
      body: { scope: 'tenant' },
      status: 202,
      answer: { ...EXPORT_EXAMPLE, scope: 'tenant', entity_id: null },
    },
  },
  async handle({ res, principal, body, actor }, deps: ComplianceDeps) {
    const job = newJob('export', body, { res, principal }, deps.clock.now());
    const before = await startedBefore(deps, { res, principal }, job);
    await startJob(deps, job, before, actor);
    return accepted(toExportResource(before ?? job), `/platform/v1/compliance/exports/${job._id}`);
  },
});

const listExports = defineEndpoint({
  method: 'GET',
  path: '/compliance/exports',
  scopes: ['compliance'],
  tag: 'Compliance',
  summary: 'List exports',
  query: listQuery,
  answers: { 200: json('A page of exports.', exportListSchema) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(COMPLETE_EXPORT_EXAMPLE) } },
  async handle({ principal, query }, { compliance }: ComplianceDeps) {
    const rows = await compliance.jobs.list(principal, 'export', query);
    return ok(toListPage(rows, query.limit, toExportResource));
  },
});

const getExport = defineEndpoint({
  method: 'GET',
  path: '/compliance/exports/:exportId',
  scopes: ['compliance'],
  tag: 'Compliance',
  summary: 'Retrieve an export',
  answers: { 200: json('The export.', exportSchema) },
  examples: { one: { status: 200, answer: COMPLETE_EXPORT_EXAMPLE } },
  async handle({ principal, params }, deps: ComplianceDeps) {
    return ok(toExportResource(await findJob(deps, principal, 'export', params.exportId)));
  },
});

/** Exports of a tenant's data (docs/spec.md#compliance). */
export const exportsEndpoints = { createExport, listExports, getExport, downloadExport };
