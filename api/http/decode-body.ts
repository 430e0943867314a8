import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Transform } from 'node:stream';

import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';

function encodingOf({ headers }: Request): string {
  return (headers['content-encoding'] ?? 'identity').toLowerCase();
}

export function isEncoded(req: Request): boolean {
  return encodingOf(req) !== 'identity';
}

/** Undefined: the body is not compressed. */
function decoderOf(req: Request): Transform | undefined {
  switch (encodingOf(req)) {
    case 'identity':
      return undefined;
    case 'gzip':
      return createGunzip();
    case 'deflate':
      return createInflate();
    case 'br':
      return createBrotliDecompress();
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

/** `pipe` passes on neither a broken connection nor that there is too much before it is decompressed. */
function pipeInto(decoder: Transform, req: Request, limit: BodyLimit): Transform {
  let bytes = 0;
  req.on('data', (part: Buffer) => {
    bytes += part.length;
    if (bytes > limit.bytes) decoder.destroy(limit.fault());
  });
  req.once('close', () => {
    if (!req.complete) decoder.destroy(new Error('The connection ended within the body.'));
  });
  return req.pipe(decoder);
}

/**
 * Yields a body in the parts in which it arrives, decompressed, and reads no faster than the caller takes them. Throws
 * a ServiceError where the body is too large, cannot be decompressed or breaks off. A caller that stops early can still
 * answer: the rest of the body is discarded unread.
 */
export async function* decodeBody(req: Request, limit: BodyLimit): AsyncGenerator<Buffer, void, undefined> {
  if (Number(req.headers['content-length'] ?? 0) > limit.bytes) throw limit.fault();
  const decoder = decoderOf(req);
  const source = decoder === undefined ? req : pipeInto(decoder, req, limit);
  let bytes = 0;
  try {
    for await (const part of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > limit.bytes) throw limit.fault();
      yield part;
    }
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    const sentence = 'The request body could not be read; check Content-Length and Content-Encoding.';
    throw new ServiceError('invalid_request', sentence, { cause });
  } finally {
    if (decoder !== undefined) {
      req.unpipe(decoder);
      decoder.destroy();
    }
    req.resume();
  }
}
