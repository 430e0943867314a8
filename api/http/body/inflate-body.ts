import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';

import type { Request } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';

/** How a body is compressed; undefined: it is not. */
export type Encoding = 'gzip' | 'deflate' | 'br' | undefined;

/** Throws `unsupported_media_type`. */
export function encodingOf({ headers }: Request): Encoding {
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

/**
 * Each chunk of output costs a turn of the event loop, and is allocated whole: a body that turns out too large leaves
 * what it has filled, and one chunk more, to the garbage collector.
 */
const CHUNK_BYTES = 256 * 1024;
const CHUNKS_MIN = 16;

const INFLATE = { gzip: promisify(gunzip), deflate: promisify(inflate), br: promisify(brotliDecompress) } as const;

function isTooLarge(fault: unknown): boolean {
  return fault instanceof Error && 'code' in fault && fault.code === 'ERR_BUFFER_TOO_LARGE';
}

/** For a body that does not match its headers: 400 `invalid_request`. */
export function unreadable(cause: unknown): ServiceError {
  const sentence = 'The request body could not be read; check Content-Length and Content-Encoding.';
  return new ServiceError('invalid_request', sentence, { cause });
}

/** Decompresses in another thread. Undefined: the result is larger than `most`. Throws if the bytes are not so encoded. */
export async function inflateUpTo(
  most: number,
  body: Buffer,
  encoding: keyof typeof INFLATE,
): Promise<Buffer | undefined> {
  try {
    const chunkSize = Math.min(Math.ceil(most / CHUNKS_MIN), CHUNK_BYTES);
    return await INFLATE[encoding](body, { maxOutputLength: most, chunkSize });
  } catch (fault) {
    if (isTooLarge(fault)) return undefined;
    throw unreadable(fault);
  }
}

/** Decompresses a body of any size. Throws a ServiceError if it grows too large or does not match its encoding. */
export async function inflateBody(body: Buffer, encoding: keyof typeof INFLATE, limit: BodyLimit): Promise<Buffer> {
  const most = Math.min(limit.bytes, GROWTH_FREE_BYTES + GROWTH_MAX * body.length);
  const inflated = await inflateUpTo(most, body, encoding);
  if (inflated !== undefined) return inflated;
  assertGrowth(body.length, most + 1, limit);
  throw limit.fault();
}
