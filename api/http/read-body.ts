import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import { isUnasked } from './ask-for-body.ts';
import type { BodyShare } from './body-budget.ts';
import type { BodyLimit } from './inflate-body.ts';

/** How long a body may take: a minimum allowance, and the rate at which bytes have to come after that. */
export interface BodyPace {
  leastMs: number;
  bytesPerSecond: number;
}

/** docs/spec.md#bodies. */
export const PACE: BodyPace = { leastMs: 30_000, bytesPerSecond: 64 * 1024 };

export function tooSlow({ leastMs, bytesPerSecond }: BodyPace): ServiceError {
  return new ServiceError(
    'invalid_request',
    `The request body took too long to arrive; send it within ${leastMs / 1_000} seconds, or at ${bytesPerSecond / 1_024} KiB a second.`,
  );
}

/** How long a body may take of which this much has come. */
export function mayTakeMs({ leastMs, bytesPerSecond }: BodyPace, bytes: number): number {
  return Math.max(leastMs, (bytes / bytesPerSecond) * 1_000);
}

const BYTES_MIN = 1_024;

/**
 * Gathers the bytes of arriving parts as copies. The parts themselves are not kept: a client may send one byte per part,
 * and a Buffer takes some 380 bytes of memory, so a body of 20 MiB would take 7 GB.
 */
export function createByteBuffer() {
  let bytes = Buffer.alloc(0);
  let length = 0;

  function clear(): void {
    bytes = Buffer.alloc(0);
    length = 0;
  }

  return {
    clear,
    get length() {
      return length;
    },
    add(part: Buffer): void {
      const needed = length + part.length;
      if (needed > bytes.length) {
        const larger = Buffer.allocUnsafe(Math.max(needed, 2 * bytes.length, BYTES_MIN));
        bytes.copy(larger, 0, 0, length);
        bytes = larger;
      }
      part.copy(bytes, length);
      length = needed;
    },
    /** Returns all bytes and starts over. */
    take(): Buffer {
      const taken = bytes.subarray(0, length);
      clear();
      return taken;
    },
  };
}

/** Gathers the bytes as they were sent. An async iterator would cost each body several turns of the event loop. */
function collect(req: Request, limit: BodyLimit, share: BodyShare, pace: BodyPace): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const bytes = createByteBuffer();
    const startedAt = performance.now();
    let timer: NodeJS.Timeout | undefined;

    function stop(): void {
      clearTimeout(timer);
      req.off('data', take).off('end', succeed).off('error', fail).off('close', fail);
    }
    function succeed(): void {
      stop();
      resolve(bytes.take());
    }
    function fail(cause?: unknown): void {
      stop();
      reject(new ServiceError('invalid_request', 'The connection ended within the request body.', { cause }));
    }
    function refuse(fault: unknown): void {
      stop();
      reject(fault instanceof Error ? fault : tooSlow(pace));
    }
    function take(part: Buffer): void {
      try {
        if (bytes.length + part.length > limit.bytes) throw limit.fault();
        share.hold(bytes.length + part.length);
        bytes.add(part);
      } catch (fault) {
        refuse(fault);
      }
    }
    /** Checks again once the time earned by the bytes so far is up. */
    function watch(): void {
      const leftMs = startedAt + mayTakeMs(pace, bytes.length) - performance.now();
      if (leftMs <= 0) refuse(tooSlow(pace));
      else timer = setTimeout(watch, leftMs);
    }

    // The client may have left while its key was looked up.
    if (req.destroyed) fail();
    else {
      req.on('data', take).on('end', succeed).on('error', fail).on('close', fail);
      watch();
    }
  });
}

/** The body, if it has arrived completely, as most do with their headers. Undefined: more is to come. */
function wholeOf(req: Request, limit: BodyLimit, share: BodyShare): Buffer | undefined {
  const { readableLength: length } = req;
  const isWhole = req.complete || (length > 0 && length === Number(req.headers['content-length']));
  if (!isWhole || req.destroyed) return undefined;
  if (length > limit.bytes) throw limit.fault();
  share.hold(length);
  // Without an encoding set, `read` returns all available bytes; null: there are none.
  const bytes = req.read() as Buffer | null;
  // Lets the request reach its end.
  req.resume();
  return bytes ?? Buffer.alloc(0);
}

/** How long a refusal waits for the rest of the body. */
const DISCARD_MS = 5_000;

/** Discards the rest of the body: many clients look for an answer only after they have sent everything. */
async function discard(req: Request): Promise<void> {
  if (req.readableEnded || req.destroyed || isUnasked(req)) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, DISCARD_MS);
    const stop = () => {
      clearTimeout(timer);
      resolve();
    };
    req.once('end', stop).once('close', stop).resume();
  });
}

/**
 * Reads a body into memory as it was sent. The memory it takes depends on its size, not on the number of parts. Throws
 * a ServiceError if the body is too large, takes too long, has no room or breaks off.
 */
export async function readBody(
  req: Request,
  limit: BodyLimit,
  share: BodyShare,
  pace: BodyPace = PACE,
): Promise<Buffer> {
  try {
    if (Number(req.headers['content-length'] ?? 0) > limit.bytes) throw limit.fault();
    return wholeOf(req, limit, share) ?? (await collect(req, limit, share, pace));
  } catch (fault) {
    share.close();
    await discard(req);
    throw fault;
  }
}
