import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';

import type { Request } from 'express';
import Joi from 'joi';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { metadataSchema } from '../../../shared/contracts/chat-request.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { wellFormedJson } from '../../../shared/contracts/well-formed-json.ts';
import type { ErrorDetail } from '../../../shared/errors/error-body.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { decodeBody, decoderBytes } from '../../http/decode-body.ts';
import { parseJson } from '../../http/parse-json.ts';
import { mediaTypeOf } from '../../http/read-json-body.ts';
import type { Piece, Place } from './line-buffer.ts';
import { createLineSplitter } from './split-lines.ts';
import { createRequestSplitter } from './split-requests.ts';
import { toLine } from './to-line.ts';
import type { BatchLine } from './to-line.ts';

/** How long reading a batch may occupy the process at a time. */
const TURN_MS = 10;

const LIMIT = {
  bytes: BATCH_LIMITS.bytesMax,
  fault: () =>
    new ServiceError(
      'payload_too_large',
      `The request body must not exceed ${BATCH_LIMITS.bytesMax} bytes, sent or decompressed; send several batches.`,
    ),
};

/** The batch's own fields, without its requests. */
export const batchFieldsSchema = Joi.object<{ metadata: object; requests?: unknown }>({
  metadata: metadataSchema,
}).required();

export interface ReadBatch {
  /** Hash of the uncompressed body. */
  sha256: string;
  metadataJson: string | undefined;
}

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
      const first = places.get(customId);
      if (first !== undefined) {
        const sentence = `The custom_id ${JSON.stringify(customId)} is there twice: ${first.name} and ${place.name}.`;
        const param = place.param === undefined ? 'custom_id' : `${place.param}.custom_id`;
        throw new ServiceError('invalid_request', sentence, { param });
      }
      places.set(customId, place);
    },
    assertAny(): void {
      if (valid > 0) return;
      if (firstFault !== undefined) throw noneIsValid(firstFault);
      throw new ServiceError('invalid_request', 'A batch must have at least one request.', { param: 'requests' });
    },
  };
}

/** Gives other work a chance between two requests of a body that arrives faster than it is read. */
function createTurns() {
  let since = performance.now();
  return {
    async take(): Promise<void> {
      if (performance.now() - since < TURN_MS) return;
      await setImmediate();
      since = performance.now();
    },
  };
}

/**
 * Reads a batch while it arrives and hands each of its lines to `keep`, which may take its time. `hold` is called with
 * the bytes in memory, and may throw to refuse more. Throws a ServiceError if the batch as a whole is invalid; the
 * error of a single request goes into its line.
 */
export async function readBatch(
  req: Request,
  keep: (line: BatchLine) => Promise<void>,
  hold: (bytes: number) => void,
): Promise<ReadBatch> {
  const type = batchTypeOf(req);
  const splitter = type === NDJSON ? createLineSplitter() : createRequestSplitter();
  const hash = createHash('sha256').update(`${type}\n`);
  const rules = createRules();
  const turns = createTurns();

  async function take(pieces: Iterable<Piece>): Promise<void> {
    for (const piece of pieces) {
      await turns.take();
      const line = toLine(piece, splitter.isWhole);
      rules.note(piece, line);
      await keep(line);
    }
  }

  const decoder = decoderBytes(req);
  hold(decoder);
  for await (const part of decodeBody(req, LIMIT)) {
    hash.update(part);
    await take(splitter.push(part));
    hold(decoder + splitter.heldBytes());
  }
  await take(splitter.end());
  const metadataJson = parseMetadata(splitter.metadata());
  rules.assertAny();
  return { sha256: hash.digest('base64url'), metadataJson };
}
