import { DELETION_STORES } from '../../../shared/contracts/compliance.ts';
import type { ComplianceScope, ComplianceStatus } from '../../../shared/contracts/compliance.ts';
import type { ComplianceJobRow } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import {
  constant,
  id,
  integer,
  listOf,
  named,
  nullable,
  object,
  oneOfType,
  pageSchema,
  text,
  time,
  toSeconds,
  toSecondsOrNull,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

const jobFields = (prefix: string, kind: string) => ({
  id: id(prefix),
  object: constant(kind),
  created_at: time(),
  scope: oneOfType<ComplianceScope>({ tenant: true, entity: true }),
  entity_id: nullable(text()),
  entity_hash: nullable(text('Stands for the entity once its id is deleted.')),
  status: oneOfType<ComplianceStatus>({ queued: true, in_progress: true, completed: true, failed: true }),
  completed_at: nullable(time('Time of completion')),
  error: nullable(text('Why it failed.')),
});

function jobOf(row: ComplianceJobRow) {
  const { _id, kind, createdAt, scope, entityId, entityHash, status, completedAt, error } = row;
  return {
    id: _id,
    object: `compliance.${kind}`,
    created_at: toSeconds(createdAt),
    scope,
    entity_id: entityId ?? null,
    entity_hash: entityHash ?? null,
    status,
    completed_at: toSecondsOrNull(completedAt),
    error: error ?? null,
  };
}

const fileSchema = object({ name: text(), rows: integer(undefined, 0), bytes: integer(undefined, 0), sha256: text() });
const exportFields = {
  ...jobFields('exp', 'compliance.export'),
  expires_at: nullable(time('Until when it can be downloaded')),
  bytes: nullable(integer('Of the archive.', 0)),
  sha256: nullable(text('Of the archive, in hex.')),
  files: { anyOf: [listOf(fileSchema), { type: 'null' }], description: 'Null until there is an archive.' },
};
export const exportSchema = named('ComplianceExport', object(exportFields));
export const exportListSchema = named('ComplianceExportList', pageSchema(exportSchema));

/** `expires_at` and the fields after it are null until there is an archive. */
export function toExportResource(row: ComplianceJobRow) {
  const { archive } = row;
  return {
    ...jobOf(row),
    expires_at: toSecondsOrNull(archive?.expiresAt),
    bytes: archive?.bytes ?? null,
    sha256: archive?.sha256 ?? null,
    files: archive?.files.map(({ name, rows, bytes, sha256 }) => ({ name, rows, bytes, sha256 })) ?? null,
  } satisfies FieldsOf<typeof exportFields>;
}

const deletionFields = {
  ...jobFields('del', 'compliance.deletion'),
  reason: nullable(text()),
  report: {
    ...object(Object.fromEntries(DELETION_STORES.map((store) => [store, integer(undefined, 0)]))),
    description: 'How much was found so far, in every store.',
  },
};
export const deletionSchema = named('ComplianceDeletion', object(deletionFields));
export const deletionListSchema = named('ComplianceDeletionList', pageSchema(deletionSchema));

/** The report counts what has been found so far, in every store. */
export function toDeletionResource(row: ComplianceJobRow) {
  const { reason, report = {} } = row;
  return {
    ...jobOf(row),
    reason: reason ?? null,
    report: Object.fromEntries(DELETION_STORES.map((store) => [store, report[store] ?? 0])),
  } satisfies FieldsOf<typeof deletionFields>;
}

const CREATED = 1_795_255_200;
const SHA256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

export const EXPORT_EXAMPLE: ReturnType<typeof toExportResource> = {
  id: PATH_PARAMETERS.exportId.example,
  object: 'compliance.export',
  created_at: CREATED,
  scope: 'entity',
  entity_id: 'pupil-7',
  entity_hash: null,
  status: 'queued',
  completed_at: null,
  error: null,
  expires_at: null,
  bytes: null,
  sha256: null,
  files: null,
};
export const COMPLETE_EXPORT_EXAMPLE: ReturnType<typeof toExportResource> = {
  ...EXPORT_EXAMPLE,
  status: 'completed',
  completed_at: CREATED + 4,
  expires_at: CREATED + 604_804,
  bytes: 1_842,
  sha256: SHA256,
  files: [{ name: 'entities.jsonl', rows: 1, bytes: 148, sha256: SHA256 }],
};

const REPORT = Object.fromEntries(DELETION_STORES.map((store) => [store, 0]));

export const DELETION_EXAMPLE = {
  id: PATH_PARAMETERS.deletionId.example,
  object: 'compliance.deletion',
  created_at: CREATED,
  scope: 'entity',
  entity_id: 'pupil-7',
  entity_hash: 'erased_dK3s7fQ2pL9xVb1nT5rW8yU4iQ2pL',
  status: 'queued',
  completed_at: null,
  error: null,
  reason: 'Asked for by the parents',
  report: REPORT,
};
export const COMPLETE_DELETION_EXAMPLE = {
  ...DELETION_EXAMPLE,
  entity_id: null,
  status: 'completed',
  completed_at: CREATED + 6,
  report: { ...REPORT, [DELETION_STORES[0]]: 1 },
};
