import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Transform } from 'node:stream';

import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import { unknownEncoding, unreadableBody } from '../middleware/body-refusals.ts';

/** The encodings that every other body may have; undefined: there is none. */
function decoderOf(req: Request): Transform | undefined {
  switch ((req.headers['content-encoding'] ?? 'identity').toLowerCase()) {
    case 'identity':
      return undefined;
    case 'gzip':
      return createGunzip();
    case 'deflate':
      return createInflate();
    case 'br':
      return createBrotliDecompress();
    default:
      throw unknownEncoding();
  }
}

function tooLarge(limitBytes: number): ServiceError {
  return new ServiceError(
    'payload_too_large',
    `The request body must not exceed ${limitBytes} bytes, sent or decompressed; send several batches.`,
  );
}

/** `pipe` passes on neither a broken connection nor that there is too much before it is decompressed. */
function pipeInto(decoder: Transform, req: Request, limitBytes: number): Transform {
  let bytes = 0;
  req.on('data', (part: Buffer) => {
    bytes += part.length;
    if (bytes > limitBytes) decoder.destroy(tooLarge(limitBytes));
  });
  req.once('close', () => {
    if (!req.complete) decoder.destroy(new Error('The connection ended within the body.'));
  });
  return req.pipe(decoder);
}

/**
 * A body in the parts in which it arrives, decompressed, no faster than they are taken. Throws a ServiceError where it
 * is too large, cannot be decompressed or breaks off. Whoever stops early can answer: the rest is let go unread.
 */
export async function* decodeBody(req: Request, limitBytes: number): AsyncGenerator<Buffer, void, undefined> {
  if (Number(req.headers['content-length'] ?? 0) > limitBytes) throw tooLarge(limitBytes);
  const decoder = decoderOf(req);
  const source = decoder === undefined ? req : pipeInto(decoder, req, limitBytes);
  let bytes = 0;
  try {
    for await (const part of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > limitBytes) throw tooLarge(limitBytes);
      yield part;
    }
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    throw unreadableBody(cause);
  } finally {
    if (decoder !== undefined) {
      req.unpipe(decoder);
      decoder.destroy();
    }
    req.resume();
  }
}
