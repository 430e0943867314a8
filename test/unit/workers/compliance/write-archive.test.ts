import { Readable } from 'node:stream';

import { expect, it } from '@jest/globals';

import { writeArchive } from '../../../../workers/compliance/run-export.ts';
import { unzip } from '../../../support/zip.ts';

it('has the text of an archive well-formed, names and values, and nothing else changed', async () => {
  const row = { 'a\ud83d': '\ude00', path: String.raw`C:\ud83d`, whole: '😀' };
  const lines = async function* () {
    yield await Promise.resolve(row);
  };
  const archive: Buffer[] = [];

  for await (const part of writeArchive([{ name: 'rows', lines }], () => ({})).parts) archive.push(part);
  const files = await unzip(Buffer.concat(archive));

  const text = String(files.get('rows.jsonl'));
  expect(JSON.parse(text)).toEqual({ 'a\ufffd': '\ufffd', path: String.raw`C:\ud83d`, whole: '😀' });
});

it.each(['first', 'second'])('ends with the fault of a source that breaks off, and closes all (%s)', async (broken) => {
  const closed: string[] = [];
  const source = (name: string) => ({
    name,
    lines: async function* () {
      try {
        yield await Promise.resolve({ name });
        if (name === broken) throw new Error('MongoDB does not answer');
      } finally {
        closed.push(name);
      }
    },
  });
  const { parts } = writeArchive([source('first'), source('second')], () => ({}));

  await expect(Readable.from(parts).toArray()).rejects.toThrow('MongoDB does not answer');

  expect(closed).toEqual(broken === 'first' ? ['first'] : ['first', 'second']);
});
