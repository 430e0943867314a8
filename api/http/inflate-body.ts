import { createBrotliDecompress, createGunzip, createInflate, gunzipSync, inflateSync } from 'node:zlib';

import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import { releaseBytes } from '../../shared/lifecycle/release-bytes.ts';

/** How a body is compressed; undefined: not at all. */
export type Encoding = 'gzip' | 'deflate' | 'br' | undefined;

/** Throws `unsupported_media_type`. */
export function encodingOf({ headers }: Pick<Request, 'headers'>): Encoding {
  const encoding = (headers['content-encoding'] ?? 'identity').toLowerCase();
  switch (encoding) {
    case 'identity':
      return undefined;
    // RFC 9110 section 8.4.1.3: an old name of the same.
    case 'x-gzip':
      return 'gzip';
    case 'gzip':
    case 'deflate':
    case 'br':
      return encoding;
    default:
      throw new ServiceError('unsupported_media_type', 'The Content-Encoding must be gzip, deflate, br or identity.');
  }
}

/** The limits of a body. */
export interface BodyLimit {
  /** The limit counts bytes as they were sent, and again after decompression. */
  bytes: number;
  /** Makes the error for a larger body. */
  fault: () => ServiceError;
}

/**
 * gzip and deflate grow to 1,032 times what was sent at most, so that no such body is refused for it. Brotli makes
 * 20 MiB of 40 bytes. The largest body of unescaped letters takes less than the free part.
 */
const GROWTH_MAX = 1_100;
const GROWTH_FREE_BYTES = 2 * 1024 * 1024;

/** Throws where `inflated` bytes are more than `sent` bytes of a compressed body may grow to. */
export function assertGrowth(sent: number, inflated: number, limit: BodyLimit): void {
  if (inflated > limit.bytes) throw limit.fault();
  if (inflated <= GROWTH_FREE_BYTES + GROWTH_MAX * sent) return;
  throw new ServiceError(
    'invalid_request',
    `The request body must not grow to more than ${GROWTH_MAX} times its bytes when it is decompressed; send it as gzip or uncompressed.`,
  );
}

/** So much is decompressed at once, in less than a millisecond. */
const SMALL_BYTES = 256 * 1024;
/** Many may end so, one after the other, before their memory is collected. */
const SMALL_BROTLI_BYTES = 128 * 1024;
const SMALL_SENT_BYTES = 64 * 1024;

/** Each part that comes out costs a turn of the event loop. */
const CHUNK_BYTES = 256 * 1024;
const SMALL_CHUNK_BYTES = 32 * 1024;

export const DECODERS = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress } as const;

function isTooLarge(fault: unknown): boolean {
  return fault instanceof Error && 'code' in fault && fault.code === 'ERR_BUFFER_TOO_LARGE';
}

/** For a body that is not what its headers say: 400 `invalid_request`. */
export function unreadable(cause: unknown): ServiceError {
  const sentence = 'The request body could not be read; check Content-Length and Content-Encoding.';
  return new ServiceError('invalid_request', sentence, { cause });
}

/** Decompresses in another thread. Undefined: there is more than `most`. */
function inflate(body: Buffer, encoding: keyof typeof DECODERS, most: number, chunkSize: number) {
  const decoder = DECODERS[encoding]({ chunkSize });
  return new Promise<Buffer | undefined>((resolve, reject) => {
    const parts: Buffer[] = [];
    let length = 0;
    decoder.on('data', (part: Buffer) => {
      parts.push(part);
      length += part.length;
      if (length > most) decoder.destroy();
    });
    decoder.on('error', (fault) => {
      reject(unreadable(fault));
    });
    decoder.on('close', () => {
      resolve(length > most ? undefined : Buffer.concat(parts, length));
      // The decoder writes to none that it has filled.
      parts.forEach(releaseBytes);
    });
    decoder.end(body);
  });
}

/** Undefined: it is large. */
export function inflateSmall(body: Buffer, encoding: 'gzip' | 'deflate'): Buffer | undefined {
  if (body.length > SMALL_SENT_BYTES) return undefined;
  try {
    return (encoding === 'gzip' ? gunzipSync : inflateSync)(body, { maxOutputLength: SMALL_BYTES });
  } catch (fault) {
    if (isTooLarge(fault)) return undefined;
    throw unreadable(fault);
  }
}

/** The same in another thread: brotli fills its window, of 16 MiB perhaps, before it gives out anything. */
export async function inflateSmallBrotli(body: Buffer): Promise<Buffer | undefined> {
  if (body.length > SMALL_SENT_BYTES) return undefined;
  return inflate(body, 'br', SMALL_BROTLI_BYTES, SMALL_CHUNK_BYTES);
}

/**
 * Decompresses in another thread; whoever has read the bytes releases them. Throws a ServiceError on a body that grows too
 * large or is not what it says.
 */
export async function inflateLarge(
  body: Buffer,
  encoding: 'gzip' | 'deflate' | 'br',
  limit: BodyLimit,
): Promise<Buffer> {
  const most = Math.min(limit.bytes, GROWTH_FREE_BYTES + GROWTH_MAX * body.length);
  const inflated = await inflate(body, encoding, most, CHUNK_BYTES);
  if (inflated !== undefined) return inflated;
  assertGrowth(body.length, most + 1, limit);
  throw limit.fault();
}
