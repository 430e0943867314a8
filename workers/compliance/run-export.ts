import { createHash } from 'node:crypto';

import type { ExportManifest } from '../../shared/contracts/compliance.ts';
import type { ComplianceJobRow } from '../../shared/infra/mongo/compliance/compliance-job-repository.ts';
import type { ComplianceWorkRepository } from '../../shared/infra/mongo/compliance/compliance-work-repository.ts';
import { ARCHIVE_KEPT_MS, CHUNK_BYTES } from '../../shared/infra/mongo/compliance/export-archive-repository.ts';
import type { ExportArchiveRepository } from '../../shared/infra/mongo/compliance/export-archive-repository.ts';
import type { ExportRows, ExportSubject } from '../../shared/infra/mongo/compliance/export-rows.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { exportFiles } from './export-files.ts';
import { JobLost } from './run-job.ts';
import type { JobHands, RunKind } from './run-job.ts';
import { writeArchive } from './write-archive.ts';

export interface RunExportDeps {
  jobs: Pick<ComplianceWorkRepository, 'completeExport'>;
  archives: ExportArchiveRepository;
  rowsOf: (subject: ExportSubject) => ExportRows;
  clock: Clock;
}

/** Cuts the incoming bytes into chunks of one size; the last may be smaller. */
async function* inChunks(parts: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const part of parts) {
    held.push(part);
    bytes += part.length;
    if (bytes < CHUNK_BYTES) continue;
    const whole = Buffer.concat(held);
    const end = whole.length - (whole.length % CHUNK_BYTES);
    for (let from = 0; from < end; from += CHUNK_BYTES) yield whole.subarray(from, from + CHUNK_BYTES);
    held = [whole.subarray(end)];
    bytes = whole.length - end;
  }
  if (bytes > 0) yield Buffer.concat(held);
}

/** Writes the archive of an export into MongoDB, chunk by chunk. A repeated run starts over under its own claim. */
export function createRunExport({ jobs, archives, rowsOf, clock }: RunExportDeps): RunKind {
  function archiveOf({ _id, tenantId, mode = 'live', scope, entityId }: ComplianceJobRow, now: number) {
    const rows = rowsOf({ tenantId, mode, entityId });
    const head = { id: _id, object: 'compliance.export.manifest', scope, tenant_id: tenantId } as const;
    return writeArchive(exportFiles(rows, scope === 'tenant'), (files): ExportManifest => {
      return { ...head, entity_id: entityId ?? null, created_at: Math.floor(now / 1000), files: [...files] };
    });
  }

  async function write(job: ComplianceJobRow, hands: JobHands): Promise<void> {
    const now = clock.now();
    const expiresAt = now + ARCHIVE_KEPT_MS;
    const { parts, files } = archiveOf(job, now);
    const hash = createHash('sha256');
    let [chunks, bytes] = [0, 0];
    for await (const data of inChunks(parts)) {
      hash.update(data);
      bytes += data.length;
      // If a deletion has removed the export, nothing more of it is written.
      await hands.hold();
      await archives.write(job, chunks, data, expiresAt);
      chunks += 1;
    }
    const archive = { bytes, sha256: hash.digest('hex'), chunks, claim: job.claim, files, expiresAt };
    if (!(await jobs.completeExport(job, archive, clock.now()))) throw new JobLost();
  }

  return async (job, hands) => {
    await archives.removeOlder(job);
    try {
      await write(job, hands);
    } catch (error) {
      await archives.remove(job);
      throw error;
    }
    // The export is complete. Archives not removed here go with the next one, or when their week is over.
    await archives.keepLatest(job, clock.now()).catch(() => undefined);
  };
}
