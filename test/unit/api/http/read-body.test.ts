import { PassThrough } from 'node:stream';

import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { Request } from 'express';

import { createPartialText } from '../../../../api/resources/batches/scan-value.ts';
import { createBodyBudget, readBody } from '../../../../api/http/read-body.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';

const LIMIT = { bytes: 200_000, fault: () => new ServiceError('payload_too_large', 'Too large.') };

const shareOf = (bytes = 1_000_000) => createBodyBudget(bytes).open('a tenant');

function open(headers: Record<string, string> = {}, complete = false) {
  const stream = new PassThrough();
  // The reader takes a stream with headers; a whole Request needs a socket.
  return { stream, req: Object.assign(stream, { headers, complete }) as unknown as Request };
}

describe('a body that has come with its headers', () => {
  it.each([
    ['too large', LIMIT, shareOf(), 'Too large.'],
    ['more than there is room for', { ...LIMIT, bytes: 1_000_000 }, shareOf(100), 'request bodies take all the room'],
  ])('is refused where it is %s, and not kept', async (_which, limit, share, message) => {
    const { stream, req } = open({}, true);
    stream.end(Buffer.alloc(200_001));
    await expect(readBody(req, limit, share)).rejects.toThrow(message);
    expect(stream.readableLength).toBe(0);
  });
});

describe('a body that comes a byte at a time', () => {
  it('is kept as bytes, and not as its parts, each of which takes hundreds', async () => {
    const { stream, req } = open();
    const read = readBody(req, LIMIT, shareOf());
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
    const read = readBody(req, LIMIT, shareOf());
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
    const read = readBody(req, LIMIT, shareOf());
    if (!isBefore) stream.destroy();
    await expect(read).rejects.toThrow('The connection ended');
  });

  it('a body is refused with 503 where there is no room for it, and its room is given back', async () => {
    const budget = createBodyBudget(150_000);
    const first = open();
    const read = readBody(first.req, LIMIT, budget.open('a tenant'));
    for (let count = 0; count < 2; count += 1) first.stream.write(Buffer.alloc(100_000));
    first.stream.end();
    await expect(read).rejects.toMatchObject({ code: 'model_unavailable', retryAfterSeconds: 5 });

    const second = open();
    second.stream.end(Buffer.alloc(150_000));
    expect(await readBody(second.req, LIMIT, budget.open('a tenant'))).toHaveLength(150_000);
  });
});

describe('the time that a body may take', () => {
  const PACE = { leastMs: 1_000, bytesPerSecond: 10_000 };
  afterEach(() => {
    jest.useRealTimers();
  });

  it('is over for a body that stalls, whose client is answered though it sends no more', async () => {
    jest.useFakeTimers();
    const { stream, req } = open();
    const read = readBody(req, LIMIT, shareOf(), PACE).catch((fault: unknown) => fault);
    stream.write('{"messages":');
    await jest.advanceTimersByTimeAsync(1_000 + 5_000);
    expect(await read).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('took too long') });
  });

  it('grows with what has come, so that a large body may come slowly', async () => {
    jest.useFakeTimers();
    const { stream, req } = open();
    const read = readBody(req, LIMIT, shareOf(), PACE);
    for (let second = 0; second < 9; second += 1) {
      stream.write(Buffer.alloc(12_000));
      await jest.advanceTimersByTimeAsync(1_000);
    }
    stream.end();
    await jest.advanceTimersByTimeAsync(0);
    expect(await read).toHaveLength(108_000);
  });
});
