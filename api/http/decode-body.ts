import { PassThrough } from 'node:stream';
import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import { askForBody } from './ask-for-body.ts';
import { assertGrowth, encodingOf, unreadable } from './inflate-body.ts';
import type { BodyLimit, Encoding } from './inflate-body.ts';
import { mayTakeMs, PACE, tooSlow } from './read-body.ts';
import type { BodyPace } from './read-body.ts';

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

const DECODERS = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress } as const;

function decoderOf(encoding: Encoding): Transform {
  return encoding === undefined ? new PassThrough() : DECODERS[encoding]();
}

/** Times a client that is waited for; the time in which its bytes wait for the service is not its own. */
function createWatch(pace: BodyPace, sentBytes: () => number, onSlow: (fault: ServiceError) => void) {
  let waitedMs = 0;
  let since = 0;
  let timer: NodeJS.Timeout | undefined;

  /** Checks again once the time earned by the bytes so far is up. */
  function check(): void {
    const leftMs = mayTakeMs(pace, sentBytes()) - waitedMs - (performance.now() - since);
    if (leftMs <= 0) onSlow(tooSlow(pace));
    else timer = setTimeout(check, leftMs);
  }

  return {
    start(): void {
      since = performance.now();
      check();
    },
    stop(): void {
      clearTimeout(timer);
      waitedMs += performance.now() - since;
    },
  };
}

/**
 * Yields a decompressed body in the parts in which it arrives, and reads no faster than the caller takes them. Throws a
 * ServiceError if the body is too large, takes too long, cannot be decompressed or breaks off. A caller that stops early
 * can still answer: the rest of the body is discarded unread.
 */
export async function* decodeBody(
  req: Request,
  limit: BodyLimit,
  pace: BodyPace = PACE,
): AsyncGenerator<Buffer, void, undefined> {
  if (Number(req.headers['content-length'] ?? 0) > limit.bytes) throw limit.fault();
  // A client that has left before would be waited for.
  if (req.destroyed) throw unreadable(undefined);
  const encoding = encodingOf(req);
  const decoder = decoderOf(encoding);
  askForBody(req);
  let sent = 0;
  const source = pipeInto(decoder, req, limit, (count) => {
    sent = count;
  });
  const watch = createWatch(
    pace,
    () => sent,
    (fault) => decoder.destroy(fault),
  );
  let bytes = 0;
  try {
    watch.start();
    for await (const part of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      watch.stop();
      bytes += part.length;
      if (encoding !== undefined) assertGrowth(sent, bytes, limit);
      yield part;
      watch.start();
    }
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    throw unreadable(cause);
  } finally {
    watch.stop();
    req.unpipe(decoder);
    decoder.destroy();
    req.resume();
  }
}
