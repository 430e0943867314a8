import { setImmediate as nextTurn } from 'node:timers/promises';

import type { Request, RequestHandler } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import { parseJson } from './parse-json.ts';
import { readBody } from './read-body.ts';

export interface BodyRules {
  limitBytes: number;
  /**
   * `chat`: every refused body is `invalid_request` (docs/spec/contract.md section 2); else 413 and 415 have their own
   * codes.
   */
  family: 'chat' | 'other';
  /** A missing body counts as an empty object. */
  optional?: boolean;
  /** How many values a large body may hold; any number by default. Parsing a million small ones takes seconds. */
  valuesMax?: number;
}

/** Reads the body. On the chat routes every fault of a body has one code. */
async function readOf(req: Request, { limitBytes, family }: BodyRules): Promise<Buffer> {
  const fault = () => new ServiceError('payload_too_large', `The request body must not exceed ${limitBytes} bytes.`);
  try {
    return await readBody(req, { bytes: limitBytes, fault });
  } catch (cause) {
    if (family !== 'chat' || !(cause instanceof ServiceError)) throw cause;
    throw new ServiceError('invalid_request', cause.message, { cause });
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

/** Joining, parsing and checking a larger body takes tens of milliseconds each, so other requests run in between. */
const LARGE_BYTES = 1024 * 1024;

async function parseBody(body: Buffer, { valuesMax = Infinity }: BodyRules): Promise<unknown> {
  if (body.length === 0) {
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
  return async (req, _res, next) => {
    if (rules.optional === true && !hasBody(req)) req.body = {};
    else {
      assertJsonType(req, rules);
      req.body = await parseBody(await readOf(req, rules), rules);
    }
    next();
  };
}
