import { DELETION_STORES } from '../../../shared/contracts/compliance.ts';
import type { ComplianceScope, ComplianceStatus } from '../../../shared/contracts/compliance.ts';
import type { ComplianceJobRow } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import {
  field,
  id,
  integer,
  kind,
  listOf,
  nullable,
  object,
  oneOfType,
  resource,
  text,
  time,
  toSeconds,
  toSecondsOrNull,
} from '../../contract/json-schema.ts';
import type { Fields } from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

const CREATED = 1_795_255_200;
const SHA256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

const jobFields = (
  prefix: string,
  name: string,
  example: { id: string; entityHash: string | null },
): Fields<[row: ComplianceJobRow]> => ({
  id: field(id(prefix), example.id, (row) => row._id),
  object: kind(name),
  created_at: field(time(), CREATED, (row) => toSeconds(row.createdAt)),
  scope: field(oneOfType<ComplianceScope>({ tenant: true, entity: true }), 'entity', (row) => row.scope),
  entity_id: field(nullable(text()), 'pupil-7', (row) => row.entityId),
  entity_hash: field(
    nullable(text('Stands for the entity once its id is deleted.')),
    example.entityHash,
    (row) => row.entityHash,
  ),
  status: field(
    oneOfType<ComplianceStatus>({ queued: true, in_progress: true, completed: true, failed: true }),
    'queued',
    (row) => row.status,
  ),
  completed_at: field(nullable(time('Time of completion')), null, (row) => toSecondsOrNull(row.completedAt)),
  error: field(nullable(text('Why it failed.')), null, (row) => row.error),
});

const fileSchema = object({ name: text(), rows: integer(undefined, 0), bytes: integer(undefined, 0), sha256: text() });

/** `expires_at` and the fields after it are null until there is an archive. */
export const exportResource = resource<[row: ComplianceJobRow]>('ComplianceExport', {
  ...jobFields('exp', 'compliance.export', { id: PATH_PARAMETERS.exportId.example, entityHash: null }),
  expires_at: field(nullable(time('Until when it can be downloaded')), null, (row) =>
    toSecondsOrNull(row.archive?.expiresAt),
  ),
  bytes: field(nullable(integer('Of the archive.', 0)), null, (row) => row.archive?.bytes),
  sha256: field(nullable(text('Of the archive, in hex.')), null, (row) => row.archive?.sha256),
  files: field(
    { anyOf: [listOf(fileSchema), { type: 'null' }], description: 'Null until there is an archive.' },
    null,
    ({ archive }) => archive?.files.map(({ name, rows, bytes, sha256 }) => ({ name, rows, bytes, sha256 })),
  ),
});
export const COMPLETE_EXPORT_EXAMPLE = {
  ...exportResource.example,
  status: 'completed',
  completed_at: CREATED + 4,
  expires_at: CREATED + 604_804,
  bytes: 1_842,
  sha256: SHA256,
  files: [{ name: 'entities.jsonl', rows: 1, bytes: 148, sha256: SHA256 }],
};

const eachStore = <Value>(valueOf: (store: (typeof DELETION_STORES)[number]) => Value) =>
  Object.fromEntries(DELETION_STORES.map((store) => [store, valueOf(store)]));

export const deletionResource = resource<[row: ComplianceJobRow]>('ComplianceDeletion', {
  ...jobFields('del', 'compliance.deletion', {
    id: PATH_PARAMETERS.deletionId.example,
    entityHash: 'erased_dK3s7fQ2pL9xVb1nT5rW8yU4iQ2pL',
  }),
  reason: field(nullable(text()), 'Asked for by the parents', (row) => row.reason),
  report: field(
    { ...object(eachStore(() => integer(undefined, 0))), description: 'How much was found so far, in every store.' },
    eachStore(() => 0),
    ({ report = {} }) => eachStore((store) => report[store] ?? 0),
  ),
});
export const COMPLETE_DELETION_EXAMPLE = {
  ...deletionResource.example,
  entity_id: null,
  status: 'completed',
  completed_at: CREATED + 6,
  report: { ...eachStore(() => 0), [DELETION_STORES[0]]: 1 },
};
