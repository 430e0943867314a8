import { DELETION_STORES } from '../../../shared/contracts/compliance.ts';
import type { ComplianceScope, ComplianceStatus } from '../../../shared/contracts/compliance.ts';
import { listQuerySchema } from '../../../shared/contracts/list-page.ts';
import { exampleList } from '../../openapi/example-list.ts';
import { json } from '../../openapi/operation.ts';
import type { OperationsOf } from '../../openapi/operation.ts';
import { PATH_PARAMETERS } from '../../openapi/parameters.ts';
import {
  constant,
  id,
  integer,
  listOf,
  nullable,
  object,
  oneOfType,
  pageSchema,
  ref,
  text,
  time,
} from '../../openapi/schema.ts';
import type { JsonSchema } from '../../openapi/schema.ts';
import { newDeletionSchema, newExportSchema } from './schema.ts';

const job = (prefix: string, kind: string) => ({
  id: id(prefix),
  object: constant(kind),
  created_at: time(),
  scope: oneOfType<ComplianceScope>({ tenant: true, entity: true }),
  entity_id: nullable(text()),
  entity_hash: nullable(text('What stands for the entity once its id is deleted.')),
  status: oneOfType<ComplianceStatus>({ queued: true, in_progress: true, completed: true, failed: true }),
  completed_at: nullable(time('When it was complete')),
  error: nullable(text('Why it has failed.')),
});
const file = object({ name: text(), rows: integer(undefined, 0), bytes: integer(undefined, 0), sha256: text() });

export const complianceSchemas: Readonly<Record<string, JsonSchema>> = {
  ComplianceExport: object({
    ...job('exp', 'compliance.export'),
    expires_at: nullable(time('Until when it can be downloaded')),
    bytes: nullable(integer('Of the archive.', 0)),
    sha256: nullable(text('Of the archive, in hex.')),
    files: { anyOf: [listOf(file), { type: 'null' }], description: 'Null until there is an archive.' },
  }),
  ComplianceExportList: pageSchema(ref('ComplianceExport')),
  ComplianceDeletion: object({
    ...job('del', 'compliance.deletion'),
    reason: nullable(text()),
    report: {
      ...object(Object.fromEntries(DELETION_STORES.map((store) => [store, integer(undefined, 0)]))),
      description: 'What has been found so far, in every store.',
    },
  }),
  ComplianceDeletionList: pageSchema(ref('ComplianceDeletion')),
};

const HASH = 'erased_dK3s7fQ2pL9xVb1nT5rW8yU4iQ2pL';
const CREATED = 1_795_255_200;
const QUEUED = { entity_hash: null, status: 'queued', completed_at: null, error: null };
const EXPORT = {
  id: PATH_PARAMETERS.exportId.example,
  object: 'compliance.export',
  created_at: CREATED,
  scope: 'entity',
  entity_id: 'pupil-7',
  ...QUEUED,
  ...{ expires_at: null, bytes: null, sha256: null, files: null },
};
const SHA256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const COMPLETE_EXPORT = {
  ...EXPORT,
  status: 'completed',
  completed_at: CREATED + 4,
  expires_at: CREATED + 604_804,
  bytes: 1_842,
  sha256: SHA256,
  files: [{ name: 'entities.jsonl', rows: 1, bytes: 148, sha256: SHA256 }],
};
const REPORT = Object.fromEntries(DELETION_STORES.map((store) => [store, 0]));
const DELETION = {
  id: PATH_PARAMETERS.deletionId.example,
  object: 'compliance.deletion',
  created_at: CREATED,
  scope: 'entity',
  entity_id: 'pupil-7',
  ...QUEUED,
  entity_hash: HASH,
  reason: 'Asked for by the parents',
  report: REPORT,
};
const COMPLETE_DELETION = {
  ...DELETION,
  ...{ entity_id: null, status: 'completed', completed_at: CREATED + 6 },
  report: { ...REPORT, [DELETION_STORES[0]]: 1 },
};

/** What the document tells of `/compliance/exports` and `/compliance/deletions`. */
export const complianceOperations: OperationsOf<
  'createExport' | 'listExports' | 'getExport' | 'downloadExport' | 'createDeletion' | 'listDeletions' | 'getDeletion'
> = {
  createExport: {
    tag: 'Compliance',
    summary: 'Ask for an export of data',
    description: 'Of one entity, or of the whole tenant. At most five at a time (409).',
    headers: ['Idempotency-Key'],
    body: { name: 'NewComplianceExport', schema: newExportSchema },
    answers: {
      202: json('It is made; look it up at `Location`.', ref('ComplianceExport'), ['Location', 'Idempotent-Replayed']),
    },
    examples: {
      entity: {
        summary: 'Of one entity',
        body: { scope: 'entity', entity_id: 'pupil-7' },
        status: 202,
        answer: EXPORT,
      },
      tenant: {
        summary: 'Of the tenant',
        body: { scope: 'tenant' },
        status: 202,
        answer: { ...EXPORT, scope: 'tenant', entity_id: null },
      },
    },
  },
  listExports: {
    tag: 'Compliance',
    summary: 'List exports',
    query: [listQuerySchema],
    answers: { 200: json('A page of exports.', ref('ComplianceExportList')) },
    examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(COMPLETE_EXPORT) } },
  },
  getExport: {
    tag: 'Compliance',
    summary: 'Look an export up',
    answers: { 200: json('The export.', ref('ComplianceExport')) },
    examples: { one: { status: 200, answer: COMPLETE_EXPORT } },
  },
  downloadExport: {
    tag: 'Compliance',
    summary: 'Download an export',
    description: 'A ZIP archive; 409 until it is complete, 410 when it is no longer kept.',
    answers: {
      200: {
        description: 'The archive.',
        content: { 'application/zip': { description: 'Its bytes.' } },
        headers: ['Content-Disposition', 'Repr-Digest'],
      },
    },
    errors: ['conflict', 'gone'],
    examples: {},
  },
  createDeletion: {
    tag: 'Compliance',
    summary: 'Delete data',
    description:
      'Of one entity, or of everybody; keys, settings and the ledger stay, the latter without the ids of entities.',
    headers: ['Idempotency-Key'],
    body: { name: 'NewComplianceDeletion', schema: newDeletionSchema },
    answers: {
      202: json('It begins; look it up at `Location`.', ref('ComplianceDeletion'), ['Location', 'Idempotent-Replayed']),
    },
    examples: {
      entity: {
        summary: 'Of one entity',
        body: { scope: 'entity', entity_id: 'pupil-7', reason: DELETION.reason },
        status: 202,
        answer: DELETION,
      },
    },
  },
  listDeletions: {
    tag: 'Compliance',
    summary: 'List deletions',
    query: [listQuerySchema],
    answers: { 200: json('A page of deletions.', ref('ComplianceDeletionList')) },
    examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(COMPLETE_DELETION) } },
  },
  getDeletion: {
    tag: 'Compliance',
    summary: 'Look a deletion up',
    answers: { 200: json('The deletion, with what was found in each store.', ref('ComplianceDeletion')) },
    examples: { one: { status: 200, answer: COMPLETE_DELETION } },
  },
};
