import type { Request } from 'express';

import { ERRORS } from '../../shared/errors/codes.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { BodyBudget } from './body-budget.ts';
import { encodingOf, inflateBody, inflateUpTo } from './inflate-body.ts';
import type { BodyLimit, Encoding } from './inflate-body.ts';
import { BROTLI_TURNS, createBodyTurns, LARGE_BODY_TURNS } from './body-turns.ts';
import type { BodyTurns } from './body-turns.ts';
import { JSON_DEPTH_MAX, parseJson, parseLargeJson } from './parse-json.ts';
import type { ParsedJson } from './parse-json.ts';
import { readBody } from './read-body.ts';
import { contextOf } from './request-context.ts';
import type { Guard } from './request-context.ts';

export interface BodyRules {
  limitBytes: number;
  /**
   * `chat`: every refused body is `invalid_request` (docs/spec.md#codes); else 413 and 415 have their own
   * codes.
   */
  family: 'chat' | 'other';
  /** A missing body counts as an empty object. */
  optional?: boolean;
  /** How many values a large body may hold; any number by default. Parsing a million small ones takes seconds. */
  valuesMax?: number;
}

/** RFC 9112 section 6: a request has a body when one of these says so. */
function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The body's media type in lower case; undefined where it says another encoding than UTF-8. */
export function mediaTypeOf({ headers }: Pick<Request, 'headers'>): string | undefined {
  const type = headers['content-type'] ?? '';
  if (type === 'application/json') return type;
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

/** Memory and CPU limits shared by all request bodies. */
export interface BodyDeps {
  budget: BodyBudget;
  large: BodyTurns;
  brotli: BodyTurns;
}

export function createBodyDeps(budget: BodyBudget): BodyDeps {
  return { budget, large: createBodyTurns(LARGE_BODY_TURNS), brotli: createBodyTurns(BROTLI_TURNS) };
}

/** Joining, parsing and checking a larger body takes tens of milliseconds each: it waits for its turn. */
const LARGE_BYTES = 1024 * 1024;

function valueOf(parsed: ParsedJson, { valuesMax = Infinity }: BodyRules): unknown {
  switch (parsed.kind) {
    case 'value':
      return parsed.value;
    case 'too many values':
      throw new ServiceError('invalid_request', `The request body must not hold more than ${valuesMax} values.`);
    case 'too deep':
      throw new ServiceError(
        'invalid_request',
        `The request body must not be nested deeper than ${JSON_DEPTH_MAX} levels.`,
      );
    case 'not json':
    case 'not utf-8':
      throw new ServiceError('invalid_request', 'The request body is not valid JSON in UTF-8.');
  }
}

function parseSmall(body: Buffer, rules: BodyRules): unknown {
  if (body.length === 0) {
    throw new ServiceError('invalid_request', 'The request body is empty; send a JSON object.');
  }
  return valueOf(parseJson(body, rules.valuesMax), rules);
}

async function parseBody(body: Buffer, rules: BodyRules): Promise<unknown> {
  if (body.length <= LARGE_BYTES) return parseSmall(body, rules);
  return valueOf(await parseLargeJson(body, rules.valuesMax ?? Infinity), rules);
}

/** A compressed body that grows to no more is parsed at once. Its decoder may hold a window of 16 MiB with brotli. */
const SMALL_INFLATED_BYTES = 256 * 1024;

/** The body, if it is small; undefined: it waits for its turn. */
async function smallOf(
  sent: Buffer,
  encoding: Encoding,
  tenantId: string,
  { brotli }: BodyDeps,
): Promise<Buffer | undefined> {
  if (encoding === undefined) return sent.length > LARGE_BYTES ? undefined : sent;
  if (sent.length === 0) return sent;
  const inflate = () => inflateUpTo(SMALL_INFLATED_BYTES, sent, encoding);
  return encoding === 'br' ? brotli.inTurn(tenantId, inflate) : inflate();
}

/**
 * Reads, decompresses and parses. A compressed body is decompressed once all of it is there: one that stalls holds what
 * was sent.
 */
async function readJson(
  req: Request,
  tenantId: string,
  rules: BodyRules,
  limit: BodyLimit,
  deps: BodyDeps,
): Promise<unknown> {
  const encoding = encodingOf(req);
  const share = deps.budget.open(tenantId);
  try {
    // The parser hands over the bytes that came with the headers before the next microtask.
    if (!req.complete) await Promise.resolve();
    const sent = await readBody(req, limit, share);
    const small = await smallOf(sent, encoding, tenantId, deps);
    if (small !== undefined) {
      if (small.length > limit.bytes) throw limit.fault();
      return parseSmall(small, rules);
    }
    return await deps.large.inTurn(tenantId, async () => {
      if (req.socket.destroyed) throw new ServiceError('invalid_request', 'The connection ended.');
      return parseBody(encoding === undefined ? sent : await inflateBody(sent, encoding, limit), rules);
    });
  } finally {
    share.close();
  }
}

/** Chat routes report every body error as `invalid_request`; 429 and 503 pass unchanged. */
function asFaultOf(family: BodyRules['family'], cause: unknown): unknown {
  const isFault = cause instanceof ServiceError && ![429, 503].includes(ERRORS[cause.code].status);
  if (family !== 'chat' || !isFault) return cause;
  return new ServiceError('invalid_request', cause.message, { cause });
}

/** Reads and parses the body; mount it after authentication, so that strangers cannot make the service read. */
export function readJsonBody(rules: BodyRules, deps: BodyDeps): Guard {
  const { limitBytes } = rules;
  const limit: BodyLimit = {
    bytes: limitBytes,
    fault: () => new ServiceError('payload_too_large', `The request body must not exceed ${limitBytes} bytes.`),
  };
  return async (req, res) => {
    if (rules.optional === true && !hasBody(req)) req.body = {};
    else {
      assertJsonType(req, rules);
      const tenantId = contextOf(res).principal?.tenantId ?? '';
      try {
        req.body = await readJson(req, tenantId, rules, contextOf(res).bodyLimit ?? limit, deps);
      } catch (cause) {
        throw asFaultOf(rules.family, cause);
      }
    }
  };
}
