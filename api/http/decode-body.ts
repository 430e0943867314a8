import type { Transform } from 'node:stream';

import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import { askForBody } from './ask-for-body.ts';
import { assertGrowth, DECODERS, encodingOf, unreadable } from './inflate-body.ts';
import type { BodyLimit, Encoding } from './inflate-body.ts';

/** The memory that a decoder holds: brotli's window is 16 MiB, the others' 32 KiB. */
const DECODER_BYTES = { gzip: 64 * 1024, deflate: 64 * 1024, br: 16 * 1024 * 1024 } as const;

/** The memory that reading a body takes on top of the body itself. */
export function decoderBytes(req: Request): number {
  const encoding = encodingOf(req);
  return encoding === undefined ? 0 : DECODER_BYTES[encoding];
}

/** `pipe` alone passes on neither a broken connection nor the limit on bytes before decompression. */
function pipeInto(decoder: Transform, req: Request, limit: BodyLimit, onSent: (bytes: number) => void): Transform {
  let bytes = 0;
  req.on('data', (part: Buffer) => {
    bytes += part.length;
    onSent(bytes);
    if (bytes > limit.bytes) decoder.destroy(limit.fault());
  });
  req.once('close', () => {
    if (!req.complete) decoder.destroy(new Error('The connection ended within the body.'));
  });
  return req.pipe(decoder);
}

function decoderOf(encoding: Encoding): Transform | undefined {
  return encoding === undefined ? undefined : DECODERS[encoding]();
}

/**
 * Yields a decompressed body in the parts in which it arrives, and reads no faster than the caller takes them. Throws a
 * ServiceError if the body is too large, cannot be decompressed or breaks off. A caller that stops early can still
 * answer: the rest of the body is discarded unread.
 */
export async function* decodeBody(req: Request, limit: BodyLimit): AsyncGenerator<Buffer, void, undefined> {
  if (Number(req.headers['content-length'] ?? 0) > limit.bytes) throw limit.fault();
  const decoder = decoderOf(encodingOf(req));
  askForBody(req);
  let sent = 0;
  const onSent = (count: number) => {
    sent = count;
  };
  const source = decoder === undefined ? req : pipeInto(decoder, req, limit, onSent);
  let bytes = 0;
  try {
    for await (const part of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (decoder !== undefined) assertGrowth(sent, bytes, limit);
      else if (bytes > limit.bytes) throw limit.fault();
      yield part;
    }
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    throw unreadable(cause);
  } finally {
    if (decoder !== undefined) {
      req.unpipe(decoder);
      decoder.destroy();
    }
    req.resume();
  }
}
