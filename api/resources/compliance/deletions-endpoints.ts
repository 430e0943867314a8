import Joi from 'joi';

import { storedText } from '../../../shared/contracts/chat-request.ts';
import { toListPage } from '../../../shared/contracts/list-page.ts';
import type { Space } from '../../../shared/contracts/space.ts';
import { OPEN_MAX } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import type { ComplianceJobRow } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import { accepted, defineEndpoint, ok, exampleList, json, jsonBody, listQuery } from '../../contract/endpoint.ts';
import { OPEN_LISTED_MAX, findJob, newJob, startJob, startedBefore, subjectFields } from './compliance-jobs.ts';
import type { ComplianceDeps, SubjectBody } from './compliance-jobs.ts';
import {
  COMPLETE_DELETION_EXAMPLE,
  DELETION_EXAMPLE,
  deletionListSchema,
  deletionSchema,
  toDeletionResource,
} from './compliance-resource.ts';

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

/** Deletions of a tenant's data (docs/spec.md#compliance). */
export const deletionsEndpoints = { createDeletion, listDeletions, getDeletion };
