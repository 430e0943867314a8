import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import Joi from 'joi';
import type { Response } from 'express';

import { storedText } from '../../../shared/contracts/chat-request.ts';
import type { ComplianceKind } from '../../../shared/contracts/compliance.ts';
import { toListPage } from '../../../shared/contracts/list-page.ts';
import type { Space } from '../../../shared/contracts/space.ts';
import { OPEN_MAX } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import type { ComplianceJobRow, ExportArchive } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import { ARCHIVES_KEPT, archiveNameOf } from '../../../shared/mongo/compliance/export-archive-repository.ts';
import type { ExportArchiveRepository } from '../../../shared/mongo/compliance/export-archive-repository.ts';
import { accepted, defineEndpoint, ok, exampleList, json, jsonBody, listQuery, SENT } from '../../contract/endpoint.ts';
import { findJob, newJob, startJob, startedBefore, subjectFields } from './compliance-jobs.ts';
import type { ComplianceDeps, SubjectBody } from './compliance-jobs.ts';
import {
  COMPLETE_DELETION_EXAMPLE,
  COMPLETE_EXPORT_EXAMPLE,
  deletionResource,
  exportResource,
} from './compliance-resource.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { dropUnread } from '../../relay/paced-writer.ts';
import { DRAIN_MS } from '../../relay/answer.ts';

const ONE_MORE = 'ask for another one with POST /compliance/exports';

/** The archive of an export that can be downloaded. Throws `conflict` and `gone`. */
function archiveOf({ status, archive, archiveGone }: ComplianceJobRow, now: number): ExportArchive {
  if (status === 'failed') throw new ServiceError('conflict', `This export has failed; ${ONE_MORE}.`);
  if (archive === undefined)
    throw new ServiceError('conflict', 'This export is not complete yet; look at its status and try again later.');
  if (archiveGone === true)
    throw new ServiceError('gone', `The file of this export was deleted together with an entity; ${ONE_MORE}.`);
  if (archive.expiresAt <= now)
    throw new ServiceError('gone', `The file of this export is no longer kept; ${ONE_MORE}.`);
  return archive;
}

function headOf({ _id: exportId }: ComplianceJobRow, { bytes, sha256 }: ExportArchive) {
  return {
    'Content-Type': 'application/zip',
    'Content-Length': bytes,
    'Content-Disposition': `attachment; filename="parley-${exportId}.zip"`,
    'Cache-Control': 'private, no-store',
    'Repr-Digest': `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`,
  };
}

/** Sends the archive chunk by chunk, no faster than the client reads. Throws only before the first byte. */
async function sendArchive(
  res: Response,
  job: ComplianceJobRow,
  archive: ExportArchive,
  { archives, drainMs }: { archives: ExportArchiveRepository; drainMs: number },
): Promise<void> {
  const name = archiveNameOf(job, archive);
  const first = await archives.read(name, 0);
  if (first === undefined) throw new ServiceError('gone', `The file of this export is no longer kept; ${ONE_MORE}.`);

  async function* chunks(): AsyncGenerator<Buffer> {
    yield first ?? Buffer.alloc(0);
    for (let number = 1; number < archive.chunks; number += 1) {
      const data = await archives.read(name, number);
      // The archive was deleted meanwhile. Cutting the connection shows that the download is incomplete.
      if (data === undefined) throw new Error('The archive is not there any more');
      yield data;
    }
  }

  res.writeHead(200, headOf(job, archive));
  dropUnread(res, drainMs);
  // `pipeline` has already cut the connection when the client leaves or the archive is deleted.
  await pipeline(Readable.from(chunks(), { objectMode: false }), res).catch(() => undefined);
}

const downloadExport = defineEndpoint({
  method: 'GET',
  path: '/compliance/exports/:exportId/download',
  scopes: ['compliance'],
  tag: 'Compliance',
  summary: 'Download an export',
  description: 'A ZIP archive; 409 until it is complete, 410 after it has expired.',
  answers: {
    200: {
      description: 'The archive.',
      content: { 'application/zip': { description: 'Its bytes.' } },
      headers: ['Content-Disposition', 'Repr-Digest'],
    },
  },
  errors: ['conflict', 'gone'],
  examples: {},
  async handle({ req, res, principal, params, actor }, deps: ComplianceDeps) {
    const { compliance, events, readerPlaces, relayTimes, clock } = deps;
    const job = await findJob(deps, principal, 'export', params.exportId);
    const archive = archiveOf(job, clock.now());
    // A request for the head alone downloads nothing.
    if (req.method === 'HEAD') {
      res.writeHead(200, headOf(job, archive)).end();
      return SENT;
    }
    readerPlaces.enterDownload(res, principal);
    await events.emit(actor, 'compliance.export_downloaded', job._id);
    const { archives } = compliance;
    await sendArchive(res, job, archive, { archives, drainMs: relayTimes.drainMs ?? DRAIN_MS });
    return SENT;
  },
});

const SHOWN = {
  export: { one: 'an export', answer: 'The export.', resource: exportResource, example: COMPLETE_EXPORT_EXAMPLE },
  deletion: {
    one: 'a deletion',
    answer: 'The deletion, with how much was found in each store.',
    resource: deletionResource,
    example: COMPLETE_DELETION_EXAMPLE,
  },
} as const;

const listJobs = (kind: ComplianceKind) => {
  const { resource, example } = SHOWN[kind];
  return defineEndpoint({
    method: 'GET',
    path: `/compliance/${kind}s`,
    scopes: ['compliance'],
    tag: 'Compliance',
    summary: `List ${kind}s`,
    query: listQuery,
    answers: { 200: json(`A page of ${kind}s.`, resource.listSchema) },
    examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(example) } },
    async handle({ principal, query }, { compliance }: ComplianceDeps) {
      const rows = await compliance.jobs.list(principal, kind, query);
      return ok(toListPage(rows, query.limit, resource.of));
    },
  });
};

const getJob = (kind: ComplianceKind) => {
  const { one, answer, resource, example } = SHOWN[kind];
  return defineEndpoint({
    method: 'GET',
    path: `/compliance/${kind}s/:${kind}Id`,
    scopes: ['compliance'],
    tag: 'Compliance',
    summary: `Retrieve ${one}`,
    answers: { 200: json(answer, resource.schema) },
    examples: { one: { status: 200, answer: example } },
    async handle({ principal, params }, deps: ComplianceDeps) {
      return ok(resource.of(await findJob(deps, principal, kind, params[`${kind}Id`])));
    },
  });
};

const createExport = defineEndpoint({
  method: 'POST',
  path: '/compliance/exports',
  scopes: ['compliance'],
  tag: 'Compliance',
  summary: 'Create an export of data',
  description: `Of one entity, or of the whole tenant: of live data with a live key, of test data with a test key. At most ${OPEN_MAX.export} of each are in progress (409). Files are kept for seven days, of each kind the latest ${ARCHIVES_KEPT.tenant} of the whole tenant and the latest ${ARCHIVES_KEPT.entity} of entities.`,
  body: jsonBody('NewComplianceExport', Joi.object<SubjectBody, true>(subjectFields).required()),
  answers: { 202: json('The export; its state is at `Location`.', exportResource.schema, ['Location']) },
  examples: {
    entity: {
      summary: 'Of one entity',
      body: { scope: 'entity', entity_id: 'pupil-7' },
      status: 202,
      answer: exportResource.example,
    },
    tenant: {
      summary: 'Of the tenant',
      body: { scope: 'tenant' },
      status: 202,
      answer: { ...exportResource.example, scope: 'tenant', entity_id: null },
    },
  },
  async handle({ res, principal, body, actor }, deps: ComplianceDeps) {
    const job = newJob('export', body, { res, principal }, deps.clock.now());
    const before = await startedBefore(deps, { res, principal }, job);
    await startJob(deps, job, before, actor);
    return accepted(exportResource.of(before ?? job), `/platform/v1/compliance/exports/${job._id}`);
  },
});

const REASON_CHARACTERS_MAX = 500;

/** An open deletion of the same entity. It reads the data only when it begins, so until then it covers the new one. */
async function sameQueued(
  { compliance }: ComplianceDeps,
  space: Space,
  { scope, entityId }: ComplianceJobRow,
): Promise<ComplianceJobRow | undefined> {
  if (scope !== 'entity') return undefined;
  const open = await compliance.jobs.listOpen(space, 'deletion');
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
  answers: { 202: json('The deletion; its state is at `Location`.', deletionResource.schema, ['Location']) },
  examples: {
    entity: {
      summary: 'Of one entity',
      body: { scope: 'entity', entity_id: 'pupil-7', reason: deletionResource.example['reason'] },
      status: 202,
      answer: deletionResource.example,
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
    return accepted(deletionResource.of(started), `/platform/v1/compliance/deletions/${started._id}`);
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
