import { DELETION_STORES } from '../../../shared/contracts/compliance.ts';
import type { ComplianceJobRow } from '../../../shared/infra/mongo/compliance/compliance-job-repository.ts';
import { toSeconds, toSecondsOrNull } from '../../contract/unix-seconds.ts';

function describe(row: ComplianceJobRow) {
  const { _id: id, kind, createdAt, scope, entityId, entityHash, status, completedAt, error } = row;
  return {
    id,
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

/** `expires_at` and what follows are null until there is an archive. */
export function toExportResource(row: ComplianceJobRow) {
  const { archive } = row;
  return {
    ...describe(row),
    expires_at: toSecondsOrNull(archive?.expiresAt),
    bytes: archive?.bytes ?? null,
    sha256: archive?.sha256 ?? null,
    files: archive?.files.map(({ name, rows, bytes, sha256 }) => ({ name, rows, bytes, sha256 })) ?? null,
  };
}

/** The report counts what has been found so far, in every store. */
export function toDeletionResource(row: ComplianceJobRow) {
  const { reason, report = {} } = row;
  return {
    ...describe(row),
    reason: reason ?? null,
    report: Object.fromEntries(DELETION_STORES.map((store) => [store, report[store] ?? 0])),
  };
}
