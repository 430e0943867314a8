import { setImmediate as nextTurn } from 'node:timers/promises';

import type { Request, Response } from 'express';

import { ERRORS } from '../../shared/errors/codes.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { encodingOf, inflateBody, inflateUpTo, readBody, sharedMax } from './read-body.ts';
import type { BodyBudget, Encoding } from './read-body.ts';
import { contextOf } from './request-context.ts';
import type { BodyLimit, Guard } from './request-context.ts';

/** Throws on bytes that are not UTF-8, because replacing them would change what the caller wrote. */
const decoder = new TextDecoder('utf-8', { fatal: true });

/** Metadata may have 5 levels, MongoDB stores 100. Parsing is safe at any depth, but writing JSON again is not. */
export const JSON_DEPTH_MAX = 100;

/** A smaller text is parsed within some 40 ms, whatever it contains. */
const COUNTED_FROM_BYTES = 256 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

export type ParsedJson =
  { kind: 'value'; value: unknown } | { kind: 'not json' | 'not utf-8' | 'too many values' | 'too deep' };

/** The closing quote of the string that begins at `start` has an even number of backslashes before it. */
function endOfString(json: Buffer, start: number): number {
  for (let end = json.indexOf(QUOTE, start + 1); end !== -1; end = json.indexOf(QUOTE, end + 1)) {
    let escapes = 0;
    while (json[end - 1 - escapes] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return json.length;
}

/**
 * Counts commas outside of strings, each of which separates two values, and opening brackets: ten million nested arrays
 * without a comma take seconds to parse. Skips strings with `indexOf`, because reading 20 MiB of them byte by byte
 * takes as long as parsing.
 */
function excessOf(json: Buffer, valuesMax: number): 'too many values' | 'too deep' | undefined {
  let values = 0;
  let depth = 0;
  for (let index = 0; index < json.length; index += 1) {
    const byte = json[index];
    if (byte === QUOTE) index = endOfString(json, index);
    else if (byte === OPENING_BRACKET || byte === OPENING_BRACE) {
      values += 1;
      depth += 1;
      if (depth > JSON_DEPTH_MAX) return 'too deep';
    } else if (byte === COMMA) values += 1;
    else if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) depth -= 1;
    if (values >= valuesMax) return 'too many values';
  }
  return undefined;
}

/** A text that was refused for its size is read down to this level. */
const OUTLINE_DEPTH = 2;

/** The upper levels of a text, in which a zero stands for every list and object further down. */
export function outlineOf(json: Buffer): Buffer {
  const outline = Buffer.alloc(json.length);
  let length = 0;
  let depth = 0;
  for (let index = 0; index < json.length; index += 1) {
    const byte = json.readUInt8(index);
    const end = byte === QUOTE ? endOfString(json, index) : index;
    const opens = byte === OPENING_BRACKET || byte === OPENING_BRACE;
    if (opens) depth += 1;
    if (depth <= OUTLINE_DEPTH)
      length = byte === QUOTE ? length + json.copy(outline, length, index, end + 1) : outline.writeUInt8(byte, length);
    else if (opens && depth === OUTLINE_DEPTH + 1) length += outline.write('0', length);
    if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) depth -= 1;
    index = end;
  }
  return outline.subarray(0, length);
}

function decode(json: Buffer): string | undefined {
  try {
    return decoder.decode(json);
  } catch {
    return undefined;
  }
}

function parseText(text: string | undefined): ParsedJson {
  if (text === undefined) return { kind: 'not utf-8' };
  try {
    return { kind: 'value', value: JSON.parse(text) };
  } catch {
    return { kind: 'not json' };
  }
}

/** Parses JSON from outside, nested at most `JSON_DEPTH_MAX` deep. `valuesMax` limits the values of a large text. */
export function parseJson(json: Buffer, valuesMax = Infinity): ParsedJson {
  const excess = excessOf(json, json.length > COUNTED_FROM_BYTES ? valuesMax : Infinity);
  return excess === undefined ? parseText(decode(json)) : { kind: excess };
}

/** Like `parseJson`, for a large text: each step takes tens of milliseconds, so other requests run in between. */
async function parseLargeJson(json: Buffer, valuesMax: number): Promise<ParsedJson> {
  await nextTurn();
  const excess = excessOf(json, valuesMax);
  if (excess !== undefined) return { kind: excess };
  await nextTurn();
  const text = decode(json);
  await nextTurn();
  const parsed = parseText(text);
  await nextTurn();
  return parsed;
}

export interface BodyRules {
  limitBytes: number;
  /** `chat`: every refused body is `invalid_request` (docs/spec.md#codes); else 413 and 415 have their own codes. */
  family: 'chat' | 'other';
  /** A missing body counts as an empty object. */
  optional?: boolean;
  /** The values that a large body may hold; any number by default. Parsing a million small ones takes seconds. */
  valuesMax?: number;
}

/** RFC 9112 section 6: a request has a body when one of these says so. */
function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The body's media type in lower case; undefined where it says another encoding than UTF-8. */
export function mediaTypeOf({ headers }: Request): string | undefined {
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

/** Bodies that may wait for their turn, and the processing time that they leave to other work. */
interface TurnRules {
  tenantWaitingMax: number;
  waitingMax: number;
  /** Each body is followed by a pause, this many times as long as its work took. */
  pauseRatio: number;
}

/** A turn takes some 0.1 s of processing time. */
export const LARGE_BODY_TURNS: TurnRules = { tenantWaitingMax: 16, waitingMax: 64, pauseRatio: 3 };
/** Another thread does the work, mostly within a millisecond. */
const BROTLI_TURNS: TurnRules = { tenantWaitingMax: 256, waitingMax: 1_024, pauseRatio: 0 };

const TURN_RETRY_SECONDS = 5;
/** Limits the pause: after the machine has stood still for a while, work should not stand still even longer. */
const PAUSE_MS_MAX = 500;

/**
 * Handles one body at a time, tenants in turn, with a pause after each, so that large bodies take at most a quarter of
 * the process's time, and the memory of a few.
 */
export function createBodyTurns({ tenantWaitingMax, waitingMax, pauseRatio }: TurnRules) {
  /** Tenants in the order of their turns, with their waiting work. */
  const waiting = new Map<string, (() => Promise<void>)[]>();
  let count = 0;
  let isRunning = false;

  function next(): (() => Promise<void>) | undefined {
    const [first] = waiting;
    if (first === undefined) return undefined;
    const [tenantId, works] = first;
    const work = works.shift();
    waiting.delete(tenantId);
    if (works.length > 0) waiting.set(tenantId, works);
    count -= 1;
    return work;
  }

  async function runAll(): Promise<void> {
    isRunning = true;
    for (let work = next(); work !== undefined; work = next()) {
      const startedAt = performance.now();
      await work();
      const pauseMs = Math.min(PAUSE_MS_MAX, pauseRatio * (performance.now() - startedAt));
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    isRunning = false;
  }

  return {
    /** Runs the work in the tenant's turn. Throws `model_unavailable` if too much is waiting already. */
    inTurn<T>(tenantId: string, work: () => Promise<T>): Promise<T> {
      const own = waiting.get(tenantId) ?? [];
      if (own.length >= tenantWaitingMax || count >= sharedMax(waitingMax, own.length === 0)) {
        throw new ServiceError(
          'model_unavailable',
          'Too many large request bodies wait to be read; try again shortly.',
          { retryAfterSeconds: TURN_RETRY_SECONDS },
        );
      }
      return new Promise<T>((resolve, reject) => {
        waiting.set(tenantId, own);
        // A work that throws at once must not end the turns of all.
        own.push(() => (async () => work())().then(resolve, reject));
        count += 1;
        if (!isRunning) void runAll();
      });
    },
  };
}

/** Memory and CPU limits shared by all request bodies. */
export type BodyDeps = ReturnType<typeof createBodyDeps>;

export function createBodyDeps(budget: BodyBudget) {
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

/** A compressed body is decompressed once all of it is there: one that stalls holds only what was sent. */
async function readJson(
  req: Request,
  res: Response,
  rules: BodyRules,
  limit: BodyLimit,
  deps: BodyDeps,
): Promise<unknown> {
  const encoding = encodingOf(req);
  const tenantId = contextOf(res).principal?.tenantId ?? '';
  const share = deps.budget.open(tenantId);
  let isHeld = false;
  try {
    // The parser hands over the bytes that came with the headers before the next microtask.
    if (!req.complete) await Promise.resolve();
    const sent = await readBody(req, limit, share);
    const small = await smallOf(sent, encoding, tenantId, deps);
    if (small !== undefined) {
      if (small.length > limit.bytes) throw limit.fault();
      return parseSmall(small, rules);
    }
    const parsed = await deps.large.inTurn(tenantId, async () => {
      if (req.socket.destroyed) throw new ServiceError('invalid_request', 'The connection ended.');
      const body = encoding === undefined ? sent : await inflateBody(sent, encoding, limit);
      share.hold(body.length);
      return parseBody(body, rules);
    });
    // A chat call lets its body go as soon as it is accepted.
    const letBodyGo = () => {
      share.close();
    };
    contextOf(res).letBodyGo = letBodyGo;
    res.once('close', letBodyGo);
    isHeld = !res.closed;
    return parsed;
  } finally {
    if (!isHeld) share.close();
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
      try {
        req.body = await readJson(req, res, rules, contextOf(res).bodyLimit ?? limit, deps);
      } catch (cause) {
        throw asFaultOf(rules.family, cause);
      }
    }
  };
}
