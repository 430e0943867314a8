import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';

import type { ZipArchive } from 'archiver';

import type { ExportedFile } from '../../shared/contracts/compliance.ts';
import type { ExportFile } from './export-files.ts';

/** A ZIP as it grows: JSON Lines, one file after the other, then `manifest.json`. Holds a few lines at a time. */
export interface Archive {
  parts: AsyncIterable<Buffer>;
  /** What is in it, once all parts have been read. */
  files: ExportedFile[];
}

/** Counts and hashes what goes by. */
async function* linesOf(source: ExportFile, files: ExportedFile[]): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  const entry: ExportedFile = { name: `${source.name}.jsonl`, rows: 0, bytes: 0, sha256: '' };
  for await (const row of source.lines()) {
    const line = Buffer.from(`${JSON.stringify(row)}\n`);
    hash.update(line);
    entry.rows += 1;
    entry.bytes += line.length;
    yield line;
  }
  entry.sha256 = hash.digest('hex');
  files.push(entry);
}

/** `manifest` gets what was written before it. A failing source ends `parts` with its error. */
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
    // Loaded only where it is used: its modules would be a good part of a worker's start.
    const archiver = await import('archiver');
    const zip = new archiver.ZipArchive({ zlib: { level: 6 } });
    const open = new Set<Readable>();
    const filled = fill(zip, open).catch((error: unknown) => {
      zip.destroy(error instanceof Error ? error : new Error('An archive could not be written', { cause: error }));
    });
    try {
      // Archiver gives bytes; a stream's type does not say so.
      for await (const part of zip) yield part as Buffer;
      await filled;
    } finally {
      // Whoever stops reading lets the rows go, too.
      for (const lines of open) lines.destroy();
      zip.destroy();
    }
  }

  return { parts: read(), files };
}
