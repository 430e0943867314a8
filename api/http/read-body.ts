import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import { createByteBlocks } from './byte-blocks.ts';
import { decodeBody, isEncoded } from './decode-body.ts';
import type { BodyLimit } from './decode-body.ts';

/** Reads a body that is not compressed, as most are. An iterator would cost each some turns of the event loop. */
function collect(req: Request, limit: BodyLimit): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const bytes = createByteBlocks();

    function stop(): void {
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
    function take(part: Buffer): void {
      bytes.add(part);
      if (bytes.length <= limit.bytes) return;
      stop();
      reject(limit.fault());
    }

    // The client may have left while its key was looked up.
    if (req.destroyed) fail();
    else req.on('data', take).on('end', succeed).on('error', fail).on('close', fail);
  });
}

/** Discards the rest unread: many clients look for an answer only after they have sent everything. */
async function drain(req: Request): Promise<void> {
  if (req.readableEnded || req.destroyed) return;
  await new Promise<void>((resolve) => {
    const stop = () => {
      resolve();
    };
    req.once('end', stop).once('close', stop).resume();
  });
}

async function read(req: Request, limit: BodyLimit): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > limit.bytes) throw limit.fault();
  if (!isEncoded(req)) return collect(req, limit);
  const bytes = createByteBlocks();
  for await (const part of decodeBody(req, limit)) bytes.add(part);
  return bytes.take();
}

/**
 * Reads a body into memory, decompressed. The memory it takes depends on its bytes, not on the number of parts. Throws
 * a ServiceError where the body is too large, cannot be decompressed or breaks off.
 */
export async function readBody(req: Request, limit: BodyLimit): Promise<Buffer> {
  try {
    return await read(req, limit);
  } catch (fault) {
    await drain(req);
    throw fault;
  }
}
