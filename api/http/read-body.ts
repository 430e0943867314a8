import { PassThrough } from 'node:stream';
import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, brotliDecompress, gunzip, inflate } from 'node:zlib';
import { promisify } from 'node:util';

import type { Request } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import { askForBody, isUnasked } from './connection-guards.ts';
import type { BodyLimit } from './request-context.ts';

const MEBIBYTE = 1024 * 1024;

/** All bodies being read may hold so much together (docs/spec.md#bodies). */
const TENANT_BYTES_MAX = 64 * MEBIBYTE;
const PROCESS_BYTES_MAX = 512 * MEBIBYTE;

/** A tenant that holds no more than this may use the last eighth of the room. */
const FIRST_BYTES_MAX = 64 * 1024;

/** A tenant that holds nothing may use the last eighth of what all share, so that a few cannot shut the others out. */
export const sharedMax = (max: number, isFirst: boolean) => (isFirst ? max : max - max / 8);

/** A body usually arrives within seconds; a stalled one is given up after half a minute. */
const RETRY_SECONDS = 5;

interface BodyShare {
  /** From now on, the body holds this many bytes. Throws `model_unavailable` if there is no room for them. */
  hold(bytes: number): void;
  /** The body is no longer held. Safe to repeat. */
  close(): void;
}

/** The bytes that bodies hold while they are read, per tenant and in total. */
export type BodyBudget = ReturnType<typeof createBodyBudget>;

function noRoom(whose: string): ServiceError {
  return new ServiceError(
    'model_unavailable',
    `${whose} request bodies take all the room there is; try again shortly.`,
    { retryAfterSeconds: RETRY_SECONDS },
  );
}

/** Keeps many slowly arriving bodies, of one tenant or of many, from using up the memory of the process. */
export function createBodyBudget(
  tenantBytesMax = TENANT_BYTES_MAX,
  processBytesMax = PROCESS_BYTES_MAX,
  firstBytesMax = FIRST_BYTES_MAX,
) {
  const byTenant = new Map<string, number>();
  let all = 0;

  return {
    open(tenantId: string): BodyShare {
      let held = 0;

      function change(bytes: number): void {
        const ofTenant = (byTenant.get(tenantId) ?? 0) + bytes;
        if (ofTenant > 0) byTenant.set(tenantId, ofTenant);
        else byTenant.delete(tenantId);
        all += bytes;
        held += bytes;
      }

      return {
        hold(bytes) {
          const more = bytes - held;
          const ofTenant = (byTenant.get(tenantId) ?? 0) + more;
          if (more > 0 && ofTenant > tenantBytesMax) throw noRoom("The account's");
          if (more > 0 && all + more > sharedMax(processBytesMax, ofTenant <= firstBytesMax)) throw noRoom('Other');
          change(more);
        },
        close() {
          change(-held);
        },
      };
    },
  };
}

export type Encoding = 'gzip' | 'deflate' | 'br' | undefined;

/** The name in the header, in lower case; empty: there is none. */
export function codingName({ headers }: Request): string {
  const name = (headers['content-encoding'] ?? '').trim().toLowerCase();
  return name === 'identity' ? '' : name;
}

/** Throws `unsupported_media_type`. */
export function encodingOf(req: Request): Encoding {
  const encoding = codingName(req);
  switch (encoding) {
    case '':
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

/**
 * gzip and deflate expand at most 1,032 times, so this limit never refuses them. Brotli can turn 40 bytes into 20 MiB.
 * The free part has room for the largest body of unescaped letters.
 */
const GROWTH_MAX = 1_100;
const GROWTH_FREE_BYTES = 2 * 1024 * 1024;

/** Throws if `inflated` bytes are more than `sent` compressed bytes may grow to. */
function assertGrowth(sent: number, inflated: number, limit: BodyLimit): void {
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
function unreadable(cause: unknown): ServiceError {
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

/** A body may take a least time, and after that its bytes have to come at a rate. */
export interface BodyPace {
  leastMs: number;
  bytesPerSecond: number;
}

/** docs/spec.md#bodies. */
const PACE: BodyPace = { leastMs: 30_000, bytesPerSecond: 64 * 1024 };

function tooSlow({ leastMs, bytesPerSecond }: BodyPace): ServiceError {
  return new ServiceError(
    'invalid_request',
    `The request body took too long to arrive; send it within ${leastMs / 1_000} seconds, or at ${bytesPerSecond / 1_024} KiB a second.`,
  );
}

function mayTakeMs({ leastMs, bytesPerSecond }: BodyPace, bytes: number): number {
  return Math.max(leastMs, (bytes / bytesPerSecond) * 1_000);
}

const BYTES_MIN = 1_024;

/**
 * Gathers arriving parts as copies: a client may send one byte per part, and a Buffer takes some 380 bytes of memory,
 * so keeping the parts of a body of 20 MiB would take 7 GB.
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
    take(): Buffer {
      const taken = bytes.subarray(0, length);
      clear();
      return taken;
    },
  };
}

/** Times a client that is waited for, without the time in which its bytes wait for the service. */
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

/** Gathers the bytes as they were sent. An async iterator would cost each body several turns of the event loop. */
function collect(req: Request, limit: BodyLimit, share: BodyShare, pace: BodyPace): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const bytes = createByteBuffer();
    const watch = createWatch(pace, () => bytes.length, refuse);

    function stop(): void {
      watch.stop();
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
    function refuse(fault: Error): void {
      stop();
      reject(fault);
    }
    function take(part: Buffer): void {
      try {
        if (bytes.length + part.length > limit.bytes) throw limit.fault();
        share.hold(bytes.length + part.length);
        bytes.add(part);
      } catch (fault) {
        // The limit and the budget throw a ServiceError.
        refuse(fault as Error);
      }
    }

    // The client may have left while its key was looked up.
    if (req.destroyed) fail();
    else {
      req.on('data', take).on('end', succeed).on('error', fail).on('close', fail);
      watch.start();
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

/** A refusal waits this long for the rest of the body. */
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
 * Reads a body as it was sent. Its memory depends on its size, not on the number of parts. Throws a ServiceError if the
 * body is too large, takes too long, has no room or breaks off.
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

/** The memory that a decoder holds: brotli's window is 16 MiB, the others' 32 KiB. */
const DECODER_BYTES = { gzip: 64 * 1024, deflate: 64 * 1024, br: 16 * 1024 * 1024 } as const;

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

/**
 * Yields a decompressed body in the parts in which it arrives, and reads no faster than the caller takes them. Throws
 * like `readBody`, or if it cannot be decompressed. A caller that stops early can still answer: the rest is discarded.
 */
export async function* decodeBody(
  req: Request,
  limit: BodyLimit,
  pace: BodyPace = PACE,
): AsyncGenerator<Buffer, void, undefined> {
  if (Number(req.headers['content-length'] ?? 0) > limit.bytes) throw limit.fault();
  // A client that left earlier would be waited for.
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
