import Joi from 'joi';

import { codePoints } from '../../../shared/contracts/chat-request.ts';
import { toListPage } from '../../../shared/contracts/list-page.ts';
import { accepted, defineEndpoint, ok } from '../../contract/define-endpoint.ts';
import { exampleList, json, jsonBody, listQuery } from '../../contract/operation.ts';
import { findJob, newJob, startJob, startedBefore, subjectFields } from './compliance-jobs.ts';
import type { ComplianceDeps, SubjectBody } from './compliance-jobs.ts';
import {
  COMPLETE_DELETION_EXAMPLE,
  DELETION_EXAMPLE,
  deletionListSchema,
  deletionSchema,
  toDeletionResource,
} from './compliance-resource.ts';

const REASON_CHARACTERS_MAX = 500;

const newDeletionSchema = Joi.object<SubjectBody & { reason?: string }, true>({
  ...subjectFields,
  reason: Joi.string()
    .allow('')
    .custom(codePoints(REASON_CHARACTERS_MAX))
    .description('For your own records; it is shown with the deletion and nowhere else.'),
}).required();

const createDeletion = defineEndpoint({
  method: 'POST',
  path: '/compliance/deletions',
  scopes: ['compliance'],
  tag: 'Compliance',
  summary: 'Create a deletion of data',
  description:
    'Of one entity, or of all entities; keys and settings stay, as does the ledger, without the ids of entities.',
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
    const before = await startedBefore(deps, { res, principal }, job);
    await startJob(deps, row, before, actor);
    return accepted(toDeletionResource(before ?? row), `/platform/v1/compliance/deletions/${row._id}`);
  },
});

const listDeletions = defineEndpoint({
  method: 'GET',
  path: '/compliance/deletions',
  scopes: ['compliance'],
  tag: 'Compliance',
  summary: 'List deletions',
  query: listQuery,
  answers: { 200: json('A page of deletions.', deletionListSchema) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(COMPLETE_DELETION_EXAMPLE) } },
  async handle({ principal, query }, { compliance }: ComplianceDeps) {
    const rows = await compliance.jobs.list(principal, 'deletion', query);
    return ok(toListPage(rows, query.limit, toDeletionResource));
  },
});

const getDeletion = defineEndpoint({
  method: 'GET',
  path: '/compliance/deletions/:deletionId',
  scopes: ['compliance'],
  tag: 'Compliance',
  summary: 'Retrieve a deletion',
  answers: { 200: json('The deletion, with how much was found in each store.', deletionSchema) },
  examples: { one: { status: 200, answer: COMPLETE_DELETION_EXAMPLE } },
  async handle({ principal, params }, deps: ComplianceDeps) {
    return ok(toDeletionResource(await findJob(deps, principal, 'deletion', params.deletionId)));
  },
});

/** Deletions of a tenant's data (docs/spec/contract.md section 6). */
export const deletionsEndpoints = { createDeletion, listDeletions, getDeletion };
