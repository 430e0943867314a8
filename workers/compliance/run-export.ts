import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { PassThrough } from 'node:stream';

import type { ExportManifest, ExportedFile } from '../../shared/contracts/compliance.ts';
import { wellFormedJson } from '../../shared/contracts/parse.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { ComplianceJobRow } from '../../shared/mongo/compliance/compliance-job-repository.ts';
import type { ComplianceWorkRepository } from '../../shared/mongo/compliance/compliance-work-repository.ts';
import { ARCHIVE_KEPT_MS, CHUNK_BYTES } from '../../shared/mongo/compliance/export-archive-repository.ts';
import type { ExportArchiveRepository } from '../../shared/mongo/compliance/export-archive-repository.ts';
import type { ExportRows, ExportSubject } from '../../shared/mongo/compliance/export-rows.ts';
import { exportFiles } from './export-files.ts';
import type { ExportFile } from './export-files.ts';
import { JobLost } from './run-job.ts';
import type { JobHands, RunKind } from './run-job.ts';

async function* linesOf(source: ExportFile, files: ExportedFile[]): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  const entry: ExportedFile = { name: `${source.name}.jsonl`, rows: 0, bytes: 0, sha256: '' };
  for await (const row of source.lines()) {
    const line = Buffer.from(`${wellFormedJson(row)}\n`);
    hash.update(line);
    entry.rows += 1;
    entry.bytes += line.length;
    yield line;
  }
  entry.sha256 = hash.digest('hex');
  files.push(entry);
}

/**
 * Streams a ZIP of JSON Lines files, then `manifest.json`, for which `manifest` gets the files written before. Holds
 * only a few lines at a time. A failing source ends `parts` with its error; `files` is complete once all parts are
 * read.
 */
export function writeArchive(sources: readonly ExportFile[], manifest: (files: readonly ExportedFile[]) => object) {
  const files: ExportedFile[] = [];
  const open = new Set<Readable>();
  function openLines(source: ExportFile, onFault: (error: Error) => void): Readable {
    const lines = Readable.from(linesOf(source, files), { objectMode: false });
    open.add(lines);
    // yazl does not listen to what it reads: a fault that nobody hears of would end the process.
    return lines.on('error', onFault).once('close', () => open.delete(lines));
  }

  async function* read(): AsyncGenerator<Buffer> {
    // Loaded on use: most workers never write an archive.
    const { ZipFile } = await import('yazl');
    const zip = new ZipFile();
    // The type promises less than the pass-through stream that it is.
    const parts = zip.outputStream as PassThrough;
    const fail = (error: Error) => void parts.destroy(error);
    zip.on('error', fail);
    // Each file is opened once those before it have been written, the manifest after all others.
    for (const source of sources)
      zip.addReadStreamLazy(`${source.name}.jsonl`, (opened) => {
        opened(undefined, openLines(source, fail));
      });
    zip.addReadStreamLazy('manifest.json', (opened) => {
      opened(undefined, Readable.from([Buffer.from(`${JSON.stringify(manifest(files), null, 2)}\n`)]));
    });
    zip.end();
    try {
      for await (const part of parts) yield part as Buffer;
    } finally {
      // When the reader stops early, the row sources are closed as well.
      for (const lines of open) lines.destroy();
    }
  }

  return { parts: read(), files };
}

export interface RunExportDeps {
  jobs: ComplianceWorkRepository;
  archives: ExportArchiveRepository;
  rowsOf: (subject: ExportSubject) => ExportRows;
  clock: Clock;
}

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

/** Writes an export's archive chunk by chunk. A repeated run starts over under its own claim. */
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
