import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';

import { describe, expect, it } from '@jest/globals';

import { inflateLarge, inflateSmall, inflateSmallBrotli } from '../../../../api/http/inflate-body.ts';
import { CHAT_LIMITS } from '../../../../shared/contracts/chat-request.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';
import { releaseBytes } from '../../../../shared/lifecycle/release-bytes.ts';

const LIMIT = {
  bytes: CHAT_LIMITS.bodyBytesMax,
  fault: () => new ServiceError('payload_too_large', 'Too large.'),
};
const COMPRESS = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync } as const;

/** 100 messages of one character, 16,000 times. */
const bodyOf = (character: string) =>
  Buffer.from(
    JSON.stringify({ messages: Array(100).fill({ role: 'user', content: 'E'.repeat(16_000) }) }).replaceAll(
      'E',
      character,
    ),
  );

describe('a compressed body', () => {
  it.each([
    ['gzip', 'E'],
    ['deflate', 'E'],
    ['br', 'E'],
    ['gzip', '\\ud83e\\udd89'],
    ['deflate', '\\ud83e\\udd89'],
  ] as const)('is read when it is the largest valid one of one character: %s of %s', async (encoding, character) => {
    const body = bodyOf(character);
    expect((await inflateLarge(COMPRESS[encoding](body), encoding, LIMIT)).equals(body)).toBe(true);
  });

  it('is refused when it grows to what no text grows to', async () => {
    const bomb = brotliCompressSync(Buffer.alloc(20 * 1024 * 1024 - 1_024, ' '));
    expect(bomb.length).toBeLessThan(64);
    await expect(inflateLarge(bomb, 'br', LIMIT)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('1100 times'),
    });
  });

  it('that is refused leaves nothing for a garbage collection to find', async () => {
    const bomb = brotliCompressSync(Buffer.alloc(20 * 1024 * 1024 - 1_024, ' '));
    let most = 0;
    for (let count = 0; count < 10; count += 1) {
      const { arrayBuffers: before } = process.memoryUsage();
      await inflateLarge(bomb, 'br', LIMIT).catch(() => undefined);
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    }
    // The part that it was at; it had grown to more than 2 MiB.
    expect(most).toBeLessThan(1024 * 1024);
  });

  it('gives its memory back once it has been read, but none that it shares', () => {
    const [own, shared] = [Buffer.concat([Buffer.alloc(100_000)]), Buffer.from('shared')];
    releaseBytes(own);
    releaseBytes(shared);
    expect([own.length, shared.toString()]).toEqual([0, 'shared']);
  });

  it.each(['gzip', 'deflate', 'br'] as const)('that breaks off is refused: %s', async (encoding) => {
    const half = COMPRESS[encoding](bodyOf('E'));
    await expect(inflateLarge(half.subarray(0, half.length / 2), encoding, LIMIT)).rejects.toMatchObject({
      code: 'invalid_request',
    });
  });

  it('is refused when it grows beyond the limit', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024, ' '));
    await expect(inflateLarge(bomb, 'gzip', LIMIT)).rejects.toThrow('Too large.');
  });

  it.each(['gzip', 'deflate'] as const)('is decompressed at once where it is small: %s', (encoding) => {
    expect(inflateSmall(COMPRESS[encoding]('x'.repeat(150_000)), encoding)?.toString()).toBe('x'.repeat(150_000));
    expect(inflateSmall(COMPRESS[encoding]('x'.repeat(300_000)), encoding)).toBeUndefined();
  });

  it('is decompressed in another thread where it is small brotli', async () => {
    expect((await inflateSmallBrotli(brotliCompressSync('x'.repeat(100_000))))?.toString()).toBe('x'.repeat(100_000));
    expect(await inflateSmallBrotli(brotliCompressSync('x'.repeat(300_000)))).toBeUndefined();
  });
});
