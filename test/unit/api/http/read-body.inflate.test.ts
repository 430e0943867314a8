import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';

import { describe, expect, it } from '@jest/globals';

import { inflateBody, inflateUpTo } from '../../../../api/http/read-body.ts';
import { CHAT_LIMITS } from '../../../../shared/contracts/chat-request.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';

const LIMIT = { bytes: CHAT_LIMITS.bodyBytesMax, fault: () => new ServiceError('payload_too_large', 'Too large.') };
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
    expect((await inflateBody(COMPRESS[encoding](body), encoding, LIMIT)).equals(body)).toBe(true);
  });

  it('is refused when it grows to what no text grows to', async () => {
    const bomb = brotliCompressSync(Buffer.alloc(20 * 1024 * 1024 - 1_024, ' '));
    expect(bomb.length).toBeLessThan(64);
    await expect(inflateBody(bomb, 'br', LIMIT)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('1100 times'),
    });
  });

  it.each(['gzip', 'deflate', 'br'] as const)('is told to be small or not: %s', async (encoding) => {
    const inflated = await inflateUpTo(200_000, COMPRESS[encoding]('x'.repeat(150_000)), encoding);
    expect(inflated?.toString()).toBe('x'.repeat(150_000));
    expect(await inflateUpTo(200_000, COMPRESS[encoding]('x'.repeat(300_000)), encoding)).toBeUndefined();
  });
});
