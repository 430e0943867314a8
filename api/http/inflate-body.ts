import { createBrotliDecompress, createGunzip, createInflate, gunzipSync, inflateSync } from 'node:zlib';

import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import { releaseBytes } from '../../shared/lifecycle/release-bytes.ts';

/** How a body is compressed; undefined: it is not. */
export type Encoding = 'gzip' | 'deflate' | 'br' | undefined;

/** Throws `unsupported_media_type`. */
export function encodingOf({ headers }: Pick<Request, 'headers'>): Encoding {
  const encoding = (headers['content-encoding'] ?? 'identity').toLowerCase();
  switch (encoding) {
    case 'identity':
      return undefined;
    // RFC 9110 section 8.4.1.3: an old name of gzip.
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
  /** Applies to the bytes as they were sent, and again after decompression. */
  bytes: number;
  /** Creates the error for a larger body. */
  fault: () => ServiceError;
}

/**
 * gzip and deflate expand at most 1,032 times, so this limit never refuses them. Brotli can turn 40 bytes into 20 MiB.
 * The largest body of unescaped letters fits into the free part.
 */
const GROWTH_MAX = 1_100;
const GROWTH_FREE_BYTES = 2 * 1024 * 1024;

/** Throws if `inflated` bytes are more than `sent` compressed bytes may grow to. */
export function assertGrowth(sent: number, inflated: number, limit: BodyLimit): void {
  if (inflated > limit.bytes) throw limit.fault();
  if (inflated <= GROWTH_FREE_BYTES + GROWTH_MAX * sent) return;
  throw new ServiceError(
    'invalid_request',
    `The request body must not grow to more than ${GROWTH_MAX} times its bytes when it is decompressed; send it as gzip or uncompressed.`,
  );
}

/** This much is decompressed synchronously, in less than a millisecond. */
const SMALL_BYTES = 256 * 1024;
/** Many bodies of this size may finish one after the other before their memory is collected. */
const SMALL_BROTLI_BYTES = 128 * 1024;
const SMALL_SENT_BYTES = 64 * 1024;

/** Each chunk of output costs a turn of the event loop. */
const CHUNK_BYTES = 256 * 1024;
const SMALL_CHUNK_BYTES = 32 * 1024;

export const DECODERS = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress } as const;

function isTooLarge(fault: unknown): boolean {
  return fault instanceof Error && 'code' in fault && fault.code === 'ERR_BUFFER_TOO_LARGE';
}

/** For a body that does not match its headers: 400 `invalid_request`. */
export function unreadable(cause: unknown): ServiceError {
  const sentence = 'The request body could not be read; check Content-Length and Content-Encoding.';
  return new ServiceError('invalid_request', sentence, { cause });
}

/** Decompresses in another thread. Undefined: the result is larger than `most`. */
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
      // The decoder no longer writes to a buffer that it has filled.
      parts.forEach(releaseBytes);
    });
    decoder.end(body);
  });
}

/** Undefined: the body is too large for this. */
export function inflateSmall(body: Buffer, encoding: 'gzip' | 'deflate'): Buffer | undefined {
  if (body.length > SMALL_SENT_BYTES) return undefined;
  try {
    return (encoding === 'gzip' ? gunzipSync : inflateSync)(body, { maxOutputLength: SMALL_BYTES });
  } catch (fault) {
    if (isTooLarge(fault)) return undefined;
    throw unreadable(fault);
  }
}

/** The same in another thread, because brotli fills its window, perhaps 16 MiB, before it outputs anything. */
export async function inflateSmallBrotli(body: Buffer): Promise<Buffer | undefined> {
  if (body.length > SMALL_SENT_BYTES) return undefined;
  return inflate(body, 'br', SMALL_BROTLI_BYTES, SMALL_CHUNK_BYTES);
}

/**
 * Decompresses in another thread; the caller releases the bytes once it has read them. Throws a ServiceError if the
 * body grows too large or does not match its encoding.
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
