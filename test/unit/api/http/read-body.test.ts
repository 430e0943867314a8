import { PassThrough } from 'node:stream';
import { gzipSync } from 'node:zlib';

import { describe, expect, it } from '@jest/globals';
import type { Request } from 'express';

import { createPartialText } from '../../../../api/resources/batches/line-buffer.ts';
import { readBody } from '../../../../api/http/read-body.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';

const LIMIT = { bytes: 200_000, fault: () => new ServiceError('payload_too_large', 'Too large.') };

function open(headers: Record<string, string> = {}) {
  const stream = new PassThrough();
  // The reader takes a stream with headers; a whole Request needs a socket.
  return { stream, req: Object.assign(stream, { headers, complete: true }) as unknown as Request };
}

describe('a body that comes a byte at a time', () => {
  it('is kept as bytes, and not as its parts, each of which takes hundreds', async () => {
    const { stream, req } = open();
    const read = readBody(req, LIMIT);
    const text = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 256));
    const part = Buffer.alloc(1);
    for (const byte of text) {
      // Whoever keeps the part has the last byte everywhere.
      part[0] = byte;
      stream.write(part);
    }
    stream.end();
    expect((await read).equals(text)).toBe(true);
  });

  it('a body that comes a byte at a time is kept so as a part of a batch, too', () => {
    const text = createPartialText(5);
    const part = Buffer.alloc(1);
    const read = (bytes: string) => {
      for (const byte of bytes) {
        part.write(byte);
        text.add(part);
      }
      return text.take()?.toString();
    };
    expect(['abcde', 'abcdef', '', 'fghij'].map(read)).toEqual(['abcde', undefined, '', 'fghij']);
  });
});

describe('a body', () => {
  it.each([
    ['that turns out to be too large', {}],
    ['that says that it is too large', { 'content-length': '200001' }],
  ])('%s is refused when its client has sent it, and not kept', async (_which, headers) => {
    const { stream, req } = open(headers);
    const read = readBody(req, LIMIT);
    for (let count = 0; count < 10; count += 1) stream.write(Buffer.alloc(100_000));
    stream.end();
    await expect(read).rejects.toThrow('Too large.');
    expect(stream.readableLength).toBe(0);
  });

  it.each([
    ['while it is read', false],
    ['before', true],
  ])('a body is given up when its connection ends %s', async (_when, isBefore) => {
    const { stream, req } = open();
    if (isBefore) stream.destroy();
    const read = readBody(req, LIMIT);
    if (!isBefore) stream.destroy();
    await expect(read).rejects.toThrow('The connection ended');
  });

  it('a body is decompressed', async () => {
    const { stream, req } = open({ 'content-encoding': 'gzip' });
    const read = readBody(req, LIMIT);
    stream.end(gzipSync('x'.repeat(150_000)));
    expect((await read).toString()).toBe('x'.repeat(150_000));
  });
});
