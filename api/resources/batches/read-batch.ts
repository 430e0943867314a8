import { createHash, hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';

import type { Request } from 'express';
import Joi from 'joi';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { metadataSchema } from '../../../shared/contracts/chat-request.ts';
import { checkAgainst, wellFormedJson } from '../../../shared/contracts/parse.ts';
import type { ErrorDetail } from '../../../shared/errors/error-body.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { decodeBody, decoderBytes, createByteBuffer } from '../../http/read-body.ts';
import { parseJson, mediaTypeOf } from '../../http/json-body.ts';
import type { Piece, Place } from './scan-value.ts';
import { createLineSplitter, createRequestSplitter } from './split-requests.ts';
import { toLine } from './to-line.ts';
import type { BatchLine } from './to-line.ts';

/** Reading a batch may occupy the process for this long at a time. */
const STEP_MS = 10;
/** One turn reads at most this much, and holds it until then. */
const TURN_BYTES = 1024 * 1024;
/** The memory of a request until the body ends: a hash of its name, and where it stands. */
const NAME_HASH_BYTES = 16;
const REMEMBERED_BYTES = 300;

const LIMIT = {
  bytes: BATCH_LIMITS.bytesMax,
  fault: () =>
    new ServiceError(
      'payload_too_large',
      `The request body must not exceed ${BATCH_LIMITS.bytesMax} bytes, sent or decompressed; send several batches.`,
    ),
};

export const batchFieldsSchema = Joi.object<{ metadata: object; requests?: unknown }>({
  metadata: metadataSchema,
}).required();

const NDJSON = 'application/x-ndjson';
/** No media type for lines of JSON is registered; clients and files use these. */
const NDJSON_NAMES: ReadonlySet<string | undefined> = new Set([
  NDJSON,
  'application/ndjson',
  'application/jsonl',
  'application/x-jsonlines',
]);

/** Throws `unsupported_media_type`. */
function batchTypeOf(req: Request): 'application/json' | typeof NDJSON {
  const type = mediaTypeOf(req);
  if (type === 'application/json') return type;
  if (NDJSON_NAMES.has(type)) return NDJSON;
  throw new ServiceError(
    'unsupported_media_type',
    'The Content-Type must be application/json or application/x-ndjson in UTF-8.',
  );
}

function parseMetadata(text: Buffer | undefined): string | undefined {
  if (text === undefined) return undefined;
  const parsed = parseJson(text);
  if (parsed.kind !== 'value') {
    throw new ServiceError('invalid_request', '`metadata` is not valid JSON in UTF-8, nor is the request body.', {
      param: 'metadata',
    });
  }
  const fields: unknown = { metadata: parsed.value };
  checkAgainst(batchFieldsSchema, fields);
  return wellFormedJson(fields.metadata);
}

/** If no request of a batch could run, the batch is refused with the error of the first one. */
function noneIsValid({ place, error }: { place: Place; error: ErrorDetail }): ServiceError {
  const fault = error.message.startsWith(place.name) ? error.message : `${place.name}: ${error.message}`;
  const inItem = error.param === place.param ? undefined : error.param;
  const param = [place.param, inItem].filter((part) => part !== undefined).join('.');
  return new ServiceError(
    'invalid_request',
    `No request of the batch is valid. ${fault}`,
    param === '' ? {} : { param },
  );
}

/** The rules that apply to all requests together. */
function createRules() {
  /** By a hash: names may be long, and all of them are there until the body ends. */
  const places = new Map<string, Place>();
  let count = 0;
  let valid = 0;
  let firstFault: { place: Place; error: ErrorDetail } | undefined;
  return {
    note({ place }: Piece, line: BatchLine): void {
      const { customId } = line;
      count += 1;
      if (!('error' in line)) valid += 1;
      else firstFault ??= { place, error: line.error };
      if (count > BATCH_LIMITS.linesMax) {
        const sentence = `A batch must not have more than ${BATCH_LIMITS.linesMax} requests; send several.`;
        throw new ServiceError('invalid_request', sentence, { param: 'requests' });
      }
      if (customId === null) return;
      const name = hash('sha256', customId, 'buffer').toString('latin1', 0, NAME_HASH_BYTES);
      const first = places.get(name);
      if (first !== undefined) {
        const sentence = `The custom_id ${JSON.stringify(customId)} is there twice: ${first.name} and ${place.name}.`;
        const param = place.param === undefined ? 'custom_id' : `${place.param}.custom_id`;
        throw new ServiceError('invalid_request', sentence, { param });
      }
      places.set(name, place);
    },
    heldBytes: () => places.size * REMEMBERED_BYTES,
    assertAny(): void {
      if (valid > 0) return;
      if (firstFault !== undefined) throw noneIsValid(firstFault);
      throw new ServiceError('invalid_request', 'A batch must have at least one request.', { param: 'requests' });
    },
  };
}

/** Gives other work a chance between two requests of one turn. */
function createSteps() {
  let since = performance.now();
  return {
    async take(): Promise<void> {
      if (performance.now() - since < STEP_MS) return;
      await setImmediate();
      since = performance.now();
    },
  };
}

export interface BatchReader {
  /** Takes a line, and may take its time. */
  keep(line: BatchLine): Promise<void>;
  /** From now on, this many bytes are in memory; may throw to refuse more. */
  hold(bytes: number): void;
  /** Runs work that takes processing time; may throw to refuse it. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
}

/** Throws a ServiceError if the batch as a whole is invalid; a single request's error goes into its line. */
export async function readBatch(req: Request, { keep, hold, inTurn }: BatchReader) {
  const type = batchTypeOf(req);
  const splitter = type === NDJSON ? createLineSplitter() : createRequestSplitter();
  const digest = createHash('sha256').update(`${type}\n`);
  const rules = createRules();
  const steps = createSteps();
  const arrived = createByteBuffer();

  async function split(pieces: Iterable<Piece>): Promise<BatchLine[]> {
    const lines: BatchLine[] = [];
    for (const piece of pieces) {
      await steps.take();
      const line = toLine(piece, splitter.isWhole);
      rules.note(piece, line);
      lines.push(line);
    }
    return lines;
  }

  /** Reads in a turn the bytes that have arrived; no other body waits while its lines are kept. */
  async function read(): Promise<void> {
    const lines = await inTurn(() => {
      const part = arrived.take();
      digest.update(part);
      return split(splitter.push(part));
    });
    for (const line of lines) await keep(line);
  }

  // The lines of a turn take the place of its bytes.
  const besides = decoderBytes(req) + TURN_BYTES;
  hold(besides);
  for await (const part of decodeBody(req, LIMIT)) {
    arrived.add(part);
    if (arrived.length < TURN_BYTES) continue;
    await read();
    hold(besides + splitter.heldBytes() + rules.heldBytes());
  }
  await read();
  for (const line of await inTurn(() => split(splitter.end()))) await keep(line);
  const metadataJson = parseMetadata(splitter.metadata());
  rules.assertAny();
  // The body's lines stay held until the batch starts.
  hold(0);
  return {
    /** Hash of the uncompressed body. */
    sha256: digest.digest('base64url'),
    metadataJson,
  };
}
