import type { Connection } from 'mongoose';

import type { ComplianceScope } from '../../contracts/compliance.ts';
import { collection, inSpace } from '../collection.ts';
import type { ClaimedRow } from '../collection.ts';
import { complianceJobModel } from './compliance-job-repository.ts';
import type { ComplianceJobRow, ExportArchive } from './compliance-job-repository.ts';

/** `_id` names export, claim and number. */
export interface ExportChunkRow {
  _id: string;
  tenantId: string;
  exportId: string;
  claim: number;
  data: Buffer;
  expiresAt: Date;
}

export const exportChunkModel = collection<ExportChunkRow>('compliance_export_chunks', [
  [{ tenantId: 1, exportId: 1 }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** `claim` names the run that wrote the archive. */
export type ArchiveName = ClaimedRow;

/** Stores archives in pieces: workers write and ingresses read them, and share no disk. */
export type ExportArchiveRepository = ReturnType<typeof createExportArchiveRepository>;

/** Far below a document's 16 MB; a process holds this much of an archive at a time. */
export const CHUNK_BYTES = 512 * 1024;

/** docs/spec.md#compliance. */
export const ARCHIVE_KEPT_MS = 7 * 24 * 3_600_000;

/** The latest of a tenant and mode: a whole tenant's archive is as large as all it has. */
export const ARCHIVES_KEPT: Readonly<Record<ComplianceScope, number>> = { tenant: 5, entity: 1_000 };

export function archiveNameOf({ _id, tenantId }: ClaimedRow, { claim }: ExportArchive): ArchiveName {
  return { _id, tenantId, claim };
}

async function endOlder(
  jobs: ReturnType<typeof complianceJobModel>,
  chunks: ReturnType<typeof exportChunkModel>,
  { tenantId, mode = 'live', scope }: ComplianceJobRow,
  now: number,
): Promise<void> {
  const kept = { ...inSpace({ tenantId, mode }), kind: 'export' as const, scope, 'archive.expiresAt': { $gt: now } };
  const latestFirst = jobs.find(kept, { _id: 1 }).sort({ completedAt: -1, _id: -1 });
  const older = (await latestFirst.skip(ARCHIVES_KEPT[scope]).lean()).map(({ _id }) => _id);
  if (older.length === 0) return;
  // Pieces go first: until the job's time is over, the next export finds it again.
  await chunks.deleteMany({ tenantId, exportId: { $in: older } });
  await jobs.updateMany({ _id: { $in: older }, tenantId }, { $set: { 'archive.expiresAt': now } });
}

export function createExportArchiveRepository(connection: Connection) {
  const chunks = exportChunkModel(connection);
  const jobs = complianceJobModel(connection);
  const idOf = ({ _id, claim }: ArchiveName, number: number) => `${_id}:${claim}:${number}`;
  return {
    /** `number` counts from 0. Safe to repeat. */
    async write(name: ArchiveName, number: number, data: Buffer, expiresAt: number): Promise<void> {
      const { _id: exportId, tenantId, claim } = name;
      await chunks.updateOne(
        { _id: idOf(name, number) },
        { $set: { tenantId, exportId, claim, data, expiresAt: new Date(expiresAt) } },
        { upsert: true },
      );
    },

    /** Undefined: deleted. */
    async read(name: ArchiveName, number: number): Promise<Buffer | undefined> {
      const { tenantId } = name;
      const row = await chunks.findOne({ _id: idOf(name, number), tenantId }, { data: 1 }).lean();
      if (row === null) return undefined;
      // lean() gives the driver's own type, whatever the row says.
      const data: unknown = row.data;
      return Buffer.isBuffer(data) ? data : (data as { buffer: Buffer }).buffer;
    },

    async removeOlder({ _id: exportId, tenantId, claim }: ArchiveName): Promise<void> {
      await chunks.deleteMany({ tenantId, exportId, claim: { $lt: claim } });
    },

    async remove({ _id: exportId, tenantId, claim }: ArchiveName): Promise<void> {
      await chunks.deleteMany({ tenantId, exportId, claim });
    },

    /** Expires this job's space and scope's archives but the latest ARCHIVES_KEPT. Safe to repeat. */
    keepLatest: (job: ComplianceJobRow, now: number): Promise<void> => endOlder(jobs, chunks, job, now),
  };
}
