import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';

import type { ZipArchive } from 'archiver';

import type { ExportedFile } from '../../shared/contracts/compliance.ts';
import { wellFormedJson } from '../../shared/contracts/well-formed-json.ts';
import type { ExportFile } from './export-files.ts';

/** A ZIP as a stream: JSON Lines files one after another, then `manifest.json`. Holds only a few lines at a time. */
export interface Archive {
  parts: AsyncIterable<Buffer>;
  /** The files in the archive; complete once all parts have been read. */
  files: ExportedFile[];
}

/** Counts and hashes the lines as they pass. */
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

/** `manifest` gets the files written before it. A failing source ends `parts` with its error. */
export function writeArchive(
  sources: readonly ExportFile[],
  manifest: (files: readonly ExportedFile[]) => object,
): Archive {
  const files: ExportedFile[] = [];

  async function fill(zip: ZipArchive, open: Set<Readable>): Promise<void> {
    for (const source of sources) {
      const lines = Readable.from(linesOf(source, files), { objectMode: false });
      open.add(lines);
      lines.once('error', (error) => zip.destroy(error));
      const written = once(zip, 'entry');
      zip.append(lines, { name: `${source.name}.jsonl` });
      await written;
      open.delete(lines);
    }
    zip.append(`${JSON.stringify(manifest(files), null, 2)}\n`, { name: 'manifest.json' });
    await zip.finalize();
  }

  async function* read(): AsyncGenerator<Buffer> {
    // Loaded on use: its modules would take a good part of a worker's start-up time.
    const archiver = await import('archiver');
    const zip = new archiver.ZipArchive({ zlib: { level: 6 } });
    const open = new Set<Readable>();
    const filled = fill(zip, open).catch((error: unknown) => {
      zip.destroy(error instanceof Error ? error : new Error('An archive could not be written', { cause: error }));
    });
    try {
      // Archiver yields bytes, although the stream's type does not say so.
      for await (const part of zip) yield part as Buffer;
      await filled;
    } finally {
      // When the reader stops early, the row sources are closed as well.
      for (const lines of open) lines.destroy();
      zip.destroy();
    }
  }

  return { parts: read(), files };
}
