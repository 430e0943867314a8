import { setImmediate as nextTurn } from 'node:timers/promises';

import express from 'express';
import type { Request, RequestHandler } from 'express';

import type { ErrorCode } from '../../shared/errors/codes.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { unknownEncoding, unreadableBody } from './body-refusals.ts';
import { parseJson } from './parse-json.ts';

export interface BodyRules {
  limitBytes: number;
  /** `chat`: every refused body is `invalid_request` (contract.md section 2); else 413 and 415 have their own codes. */
  family: 'chat' | 'other';
  /** No body at all stands for an empty object. */
  optional?: boolean;
  /** How many values a large body may hold: a million small ones would stop the process for seconds. Absent: any. */
  valuesMax?: number;
}

/** body-parser's own word for what went wrong, where it says one. */
function typeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'type' in error ? String(error.type) : '';
}

function refuse(error: unknown, { limitBytes, family }: BodyRules): ServiceError {
  const own = (code: ErrorCode): ErrorCode => (family === 'chat' ? 'invalid_request' : code);
  switch (typeOf(error)) {
    case 'entity.too.large':
      return new ServiceError(own('payload_too_large'), `The request body must not exceed ${limitBytes} bytes.`, {
        cause: error,
      });
    case 'encoding.unsupported':
      return unknownEncoding(error, own('unsupported_media_type'));
    default:
      return unreadableBody(error);
  }
}

/** RFC 9112 section 6: a request has a body when one of these says so. */
function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The body's media type in lower case; undefined where it says another encoding than UTF-8. */
export function mediaTypeOf({ headers }: Pick<Request, 'headers'>): string | undefined {
  const type = headers['content-type'] ?? '';
  const [essence = '', ...parameters] = type.split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters
    .find((part) => part.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '');
  return charset === undefined || charset === 'utf-8' || charset === 'utf8' ? essence : undefined;
}

function assertJsonType(req: Request, { family }: BodyRules): void {
  if (mediaTypeOf(req) === 'application/json') return;
  const code = family === 'chat' ? 'invalid_request' : 'unsupported_media_type';
  throw new ServiceError(code, 'The Content-Type must be application/json in UTF-8.');
}

/** Putting a larger body together, parsing and checking it takes tens of milliseconds each: others get their turn. */
const LARGE_BYTES = 1024 * 1024;

async function parseBody(body: unknown, { valuesMax = Infinity }: BodyRules): Promise<unknown> {
  if (!Buffer.isBuffer(body) || body.length === 0) {
    throw new ServiceError('invalid_request', 'The request body is empty; send a JSON object.');
  }
  const isLarge = body.length > LARGE_BYTES;
  if (isLarge) await nextTurn();
  const parsed = parseJson(body, valuesMax);
  if (isLarge) await nextTurn();
  switch (parsed.kind) {
    case 'value':
      return parsed.value;
    case 'too many values':
      throw new ServiceError('invalid_request', `The request body must not hold more than ${valuesMax} values.`);
    case 'not json':
    case 'not utf-8':
      throw new ServiceError('invalid_request', 'The request body is not valid JSON in UTF-8.');
  }
}

/** Reads and parses the body; mount it after authentication, so that strangers cannot make the service read. */
export function readJsonBody(rules: BodyRules): RequestHandler {
  const read = express.raw({ type: () => true, limit: rules.limitBytes });
  return (req, res, next) => {
    if (rules.optional === true && !hasBody(req)) {
      req.body = {};
      next();
      return;
    }
    assertJsonType(req, rules);
    read(req, res, (error?: unknown) => {
      if (error !== undefined) {
        next(refuse(error, rules));
        return;
      }
      parseBody(req.body, rules).then(
        (value) => {
          req.body = value;
          next();
        },
        (fault: unknown) => {
          next(fault);
        },
      );
    });
  };
}
