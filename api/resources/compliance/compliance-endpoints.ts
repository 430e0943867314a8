import Joi from 'joi';

import { storedText } from '../../../shared/contracts/chat-request.ts';
import type { ComplianceKind } from '../../../shared/contracts/compliance.ts';
import { toListPage } from '../../../shared/contracts/list-page.ts';
import type { Space } from '../../../shared/contracts/space.ts';
import { OPEN_MAX } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import type { ComplianceJobRow } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import { ARCHIVES_KEPT } from '../../../shared/mongo/compliance/export-archive-repository.ts';
import { accepted, defineEndpoint, ok, exampleList, json, jsonBody, listQuery } from '../../contract/endpoint.ts';
import { OPEN_LISTED_MAX, findJob, newJob, startJob, startedBefore, subjectFields } from './compliance-jobs.ts';
import type { ComplianceDeps, SubjectBody } from './compliance-jobs.ts';
import {
  COMPLETE_DELETION_EXAMPLE,
  COMPLETE_EXPORT_EXAMPLE,
  DELETION_EXAMPLE,
  deletionListSchema,
  deletionSchema,
  EXPORT_EXAMPLE,
  exportListSchema,
  exportSchema,
  toDeletionResource,
  toExportResource,
} from './compliance-resource.ts';
import { downloadExport } from './download-export.ts';

/** The texts, schemas and examples of each kind of job. */
const SHOWN = {
  export: {
    one: 'an export',
    answer: 'The export.',
    schema: exportSchema,
    listSchema: exportListSchema,
    example: COMPLETE_EXPORT_EXAMPLE,
    toResource: toExportResource,
  },
  deletion: {
    one: 'a deletion',
    answer: 'The deletion, with how much was found in each store.',
    schema: deletionSchema,
    listSchema: deletionListSchema,
    example: COMPLETE_DELETION_EXAMPLE,
    toResource: toDeletionResource,
  },
} as const;

const listJobs = (kind: ComplianceKind) => {
  const { listSchema, example, toResource } = SHOWN[kind];
  return defineEndpoint({
    method: 'GET',
    path: `/compliance/${kind}s`,
    scopes: ['compliance'],
    tag: 'Compliance',
    summary: `List ${kind}s`,
    query: listQuery,
    answers: { 200: json(`A page of ${kind}s.`, listSchema) },
    examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(example) } },
    async handle({ principal, query }, { compliance }: ComplianceDeps) {
      const rows = await compliance.jobs.list(principal, kind, query);
      return ok(toListPage<ComplianceJobRow, { id: string }>(rows, query.limit, toResource));
    },
  });
};

const getJob = (kind: ComplianceKind) => {
  const { one, answer, schema, example, toResource } = SHOWN[kind];
  return defineEndpoint({
    method: 'GET',
    path: `/compliance/${kind}s/:${kind}Id`,
    scopes: ['compliance'],
    tag: 'Compliance',
    summary: `Retrieve ${one}`,
    answers: { 200: json(answer, schema) },
    examples: { one: { status: 200, answer: example } },
    async handle({ principal, params }, deps: ComplianceDeps) {
      return ok(toResource(await findJob(deps, principal, kind, params[`${kind}Id`])));
    },
  });
};

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

const REASON_CHARACTERS_MAX = 500;

/**
 * A deletion of the same entity that is open but has not begun. It covers the new one too, because it reads the data
 * only when it begins; one that has begun does not.
 */
async function sameQueued(
  { compliance }: ComplianceDeps,
  space: Space,
  { scope, entityId }: ComplianceJobRow,
): Promise<ComplianceJobRow | undefined> {
  if (scope !== 'entity') return undefined;
  const open = await compliance.jobs.listOpen(space, 'deletion', OPEN_LISTED_MAX);
  return open.find((row) => row.scope === 'entity' && row.status === 'queued' && row.entityId === entityId);
}

const newDeletionSchema = Joi.object<SubjectBody & { reason?: string }, true>({
  ...subjectFields,
  reason: storedText(REASON_CHARACTERS_MAX)
    .allow('')
    .description('For your own records; it is shown with the deletion and nowhere else.'),
}).required();

const createDeletion = defineEndpoint({
  method: 'POST',
  path: '/compliance/deletions',
  scopes: ['compliance'],
  tag: 'Compliance',
  summary: 'Create a deletion of data',
  description: `Of one entity, or of all entities; keys and settings stay, as does the ledger, without the ids of entities. A live key deletes live and test data, a test key test data alone. A tenant has at most one deletion of all entities and ${OPEN_MAX.deletion} of single ones in progress (409), and as many of test keys. A deletion of the same entity that has not begun is answered again.`,
  body: jsonBody('NewComplianceDeletion', newDeletionSchema),
  answers: { 202: json('The deletion; its state is at `Location`.', deletionSchema, ['Location']) },
  examples: {
    entity: {
      summary: 'Of one entity',
      body: { scope: 'entity', entity_id: 'pupil-7', reason: DELETION_EXAMPLE.reason },
      status: 202,
      answer: DELETION_EXAMPLE,
    },
  },
  async handle({ res, principal, body, actor }, deps: ComplianceDeps) {
    const { reason } = body;
    const job = newJob('deletion', body, { res, principal }, deps.clock.now());
    const { tenantId, entityId } = job;
    const row = {
      ...job,
      ...(entityId === undefined ? {} : { entityHash: deps.compliance.pseudonyms.of(tenantId, entityId) }),
      ...(reason === undefined ? {} : { reason }),
    };
    const before = (await startedBefore(deps, { res, principal }, job)) ?? (await sameQueued(deps, principal, job));
    await startJob(deps, before ?? row, before, actor);
    const started = before ?? row;
    return accepted(toDeletionResource(started), `/platform/v1/compliance/deletions/${started._id}`);
  },
});

/** Exports of a tenant's data (docs/spec.md#compliance). */
export const exportsEndpoints = {
  createExport,
  listExports: listJobs('export'),
  getExport: getJob('export'),
  downloadExport,
};

/** Deletions of a tenant's data (docs/spec.md#compliance). */
export const deletionsEndpoints = {
  createDeletion,
  listDeletions: listJobs('deletion'),
  getDeletion: getJob('deletion'),
};
