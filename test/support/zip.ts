import { createHash } from 'node:crypto';

import yauzl from 'yauzl';
import type { Entry, ZipFile } from 'yauzl';

async function contentOf(zip: ZipFile, entry: Entry): Promise<Buffer> {
  const stream = await new Promise<NodeJS.ReadableStream>((resolve, reject) => {
    zip.openReadStream(entry, (error, opened) => {
      if (error === null) resolve(opened);
      else reject(error);
    });
  });
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

/** The files of a ZIP by name; yauzl checks each one's CRC and size. */
export async function unzip(data: Buffer): Promise<Map<string, Buffer>> {
  const zip = await new Promise<ZipFile>((resolve, reject) => {
    yauzl.fromBuffer(data, { lazyEntries: true }, (error, opened) => {
      if (error === null) resolve(opened);
      else reject(error);
    });
  });
  const files = new Map<string, Buffer>();
  const done = Promise.withResolvers<undefined>();
  zip.on('error', done.reject);
  zip.on('end', () => {
    done.resolve(undefined);
  });
  zip.on('entry', (entry: Entry) => {
    contentOf(zip, entry).then((content) => {
      files.set(entry.fileName, content);
      zip.readEntry();
    }, done.reject);
  });
  zip.readEntry();
  await done.promise;
  return files;
}

export function sha256Of(data: Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

/** The lines of a JSON Lines file, parsed. */
export function linesOf(data: Buffer): Record<string, unknown>[] {
  const text = data.toString('utf8');
  return text === ''
    ? []
    : text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>);
}
