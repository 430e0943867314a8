import { PassThrough } from 'node:stream';
import { gzipSync } from 'node:zlib';

import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Request } from 'express';

import { decodeBody } from '../../../../api/http/read-body.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';

const LIMIT = { bytes: 200_000, fault: () => new ServiceError('payload_too_large', 'Too large.') };

function open(headers: Record<string, string> = {}) {
  const stream = new PassThrough();
  // The reader takes a stream with headers; a whole Request needs a socket.
  return { stream, req: Object.assign(stream, { headers, complete: false }) as unknown as Request };
}

async function readAll(req: Request, each: () => Promise<void> = () => Promise.resolve()): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of decodeBody(req, LIMIT)) {
    parts.push(part);
    await each();
  }
  return Buffer.concat(parts);
}

describe('a body that is read as it arrives', () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it.each([
    ['as it is', {}, Buffer.from('a part')],
    ['compressed', { 'content-encoding': 'gzip' }, gzipSync('x'.repeat(100_000)).subarray(0, 50)],
  ])('is refused where it stalls for half a minute, and the rest is not kept: %s', async (_how, headers, part) => {
    const { stream, req } = open(headers);
    stream.write(part);
    const refused = expect(readAll(req)).rejects.toThrow('took too long to arrive');
    await jest.advanceTimersByTimeAsync(29_000);
    stream.write(part.subarray(0, 0));

    await jest.advanceTimersByTimeAsync(1_100);

    await refused;
    stream.write('more');
    expect(stream.readableLength).toBe(0);
  });

  it('does not wait for a client that has left', async () => {
    const { stream, req } = open();
    stream.destroy();
    await expect(readAll(req)).rejects.toMatchObject({ code: 'invalid_request' });
  });

  it('is not blamed for the time that its reader takes', async () => {
    const { stream, req } = open();
    const all = readAll(req, () => new Promise((resolve) => setTimeout(resolve, 20_000)));
    stream.write('one');
    await jest.advanceTimersByTimeAsync(19_000);
    stream.write('two');
    await jest.advanceTimersByTimeAsync(21_000);
    Object.assign(req, { complete: true });
    stream.end('three');
    await jest.advanceTimersByTimeAsync(60_000);
    expect(String(await all)).toBe('onetwothree');
  });
});
