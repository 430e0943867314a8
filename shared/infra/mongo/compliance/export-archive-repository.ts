import type { ExportArchive } from './compliance-rows.ts';
import type { ClaimedJob } from './compliance-job-repository.ts';
import type { Models } from '../models.ts';

/** Whose archive: `claim` names the attempt that wrote it. */
export type ArchiveName = Omit<ClaimedJob, 'tenantId'> & { tenantId: string };

/** Archives of exports in pieces: workers write them and ingresses read them, and the two share no disk. */
export interface ExportArchiveRepository {
  /** `number` counts from 0. Safe to repeat. */
  write(name: ArchiveName, number: number, data: Buffer, expiresAt: number): Promise<void>;
  /** Undefined: it is not there any more. */
  read(name: ArchiveName, number: number): Promise<Buffer | undefined>;
  /** Takes away what attempts before this one have left. */
  removeOlder(name: ArchiveName): Promise<void>;
  /** Takes away what this attempt has written. */
  remove(name: ArchiveName): Promise<void>;
}

/** Far below the 16 MB of a document, and what a process holds of an archive at a time. */
export const CHUNK_BYTES = 512 * 1024;

/** docs/spec/contract.md section 6 leaves it open. */
export const ARCHIVE_KEPT_MS = 7 * 24 * 3_600_000;

export function archiveNameOf(
  { _id, tenantId }: Pick<ClaimedJob, '_id' | 'tenantId'>,
  { claim }: ExportArchive,
): ArchiveName {
  return { _id, tenantId, claim };
}

export function createExportArchiveRepository({
  exportChunks: chunks,
}: Pick<Models, 'exportChunks'>): ExportArchiveRepository {
  const idOf = ({ _id, claim }: ArchiveName, number: number) => `${_id}:${claim}:${number}`;
  return {
    async write(name, number, data, expiresAt) {
      const { _id: exportId, tenantId, claim } = name;
      await chunks.updateOne(
        { _id: idOf(name, number) },
        { $set: { tenantId, exportId, claim, data, expiresAt: new Date(expiresAt) } },
        { upsert: true },
      );
    },

    async read(name, number) {
      const { tenantId } = name;
      const row = await chunks.findOne({ _id: idOf(name, number), tenantId }, { data: 1 }).lean();
      if (row === null) return undefined;
      // lean() gives the driver's own type, whatever the row says.
      const data: unknown = row.data;
      return Buffer.isBuffer(data) ? data : (data as { buffer: Buffer }).buffer;
    },

    async removeOlder({ _id: exportId, tenantId, claim }) {
      await chunks.deleteMany({ tenantId, exportId, claim: { $lt: claim } });
    },

    async remove({ _id: exportId, tenantId, claim }) {
      await chunks.deleteMany({ tenantId, exportId, claim });
    },
  };
}
