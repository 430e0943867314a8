import type Joi from 'joi';

import type { ErrorCode } from '../errors/codes.ts';
import { ServiceError } from '../errors/service-error.ts';
import { CHAT_MESSAGES } from './chat-request.ts';

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const BYTES_OF_OTHERS = 4;
/** JSON writes these as two to six bytes. */
const ESCAPED = /[\0-\x1f"\\\ud800-\udfff]/;

/** The length as JSON in UTF-8, without writing it: exact for texts, nearly so for the rest. */
export function bytesOf(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(ESCAPED.test(value) ? JSON.stringify(value) : value);
  if (typeof value !== 'object' || value === null) return BYTES_OF_OTHERS;
  let bytes = BYTES_OF_OTHERS;
  if (Array.isArray(value)) for (const item of value) bytes += bytesOf(item);
  else for (const [name, item] of Object.entries(value)) bytes += bytesOf(name) + bytesOf(item);
  return bytes;
}

/** `['messages', 3, 'content']` → `messages[3].content`. */
function formatPath(path: readonly (string | number)[]): string {
  let text = '';
  for (const part of path) text += typeof part === 'number' ? `[${part}]` : text === '' ? part : `.${part}`;
  return text;
}

function codeOf(detail: Joi.ValidationErrorItem): ErrorCode {
  const [first, , third] = detail.path;
  if (first === 'messages' && detail.path.length === 1 && detail.type === 'array.max') return 'too_many_messages';
  if (first === 'messages' && third === 'content' && detail.type === 'text.tooLong') return 'message_too_long';
  return 'invalid_request';
}

/** Turns joi's `"field" must be …` into a sentence that names the field without the escaped quotes. */
function sentenceOf(detail: Joi.ValidationErrorItem, param: string): string {
  const sentence = detail.message.replaceAll('"', '`');
  return param === '' ? sentence.replace('`value`', 'The request body') + '.' : `${sentence}.`;
}

/** joi compiles messages in every call that passes them, so each schema gets them once: 12 µs instead of 62. */
const strict = new WeakMap<Joi.Schema, Joi.Schema>();

function strictly(schema: Joi.Schema): Joi.Schema {
  let known = strict.get(schema);
  if (known === undefined) {
    known = schema.prefs({ convert: false, abortEarly: true, messages: CHAT_MESSAGES });
    strict.set(schema, known);
  }
  return known;
}

/** joi ignores a field of this name, even if it refuses all other unknown fields. */
function assertPlain(input: unknown): void {
  if (typeof input !== 'object' || input === null || !Object.hasOwn(input, '__proto__')) return;
  throw new ServiceError('invalid_request', '`__proto__` is not allowed.', { param: '__proto__' });
}

/** Converts nothing, so `"5"` is not a number. Throws a ServiceError that names the first bad field and its rule. */
export function checkAgainst<T>(schema: Joi.ObjectSchema<T>, input: unknown): asserts input is T {
  assertPlain(input);
  const { error } = strictly(schema).validate(input);
  const detail = error?.details[0];
  if (detail === undefined) return;
  const param = formatPath(detail.path);
  throw new ServiceError(codeOf(detail), sentenceOf(detail, param), param === '' ? {} : { param });
}

/** JSON.stringify's escape, and perhaps of half a surrogate pair: it escapes surrogates only if they stand alone. */
const ESCAPE = /\\(?:ud[0-9a-f]{3}|.)/g;
const HALF_LENGTH = String.raw`\ud83d`.length;

/**
 * Replaces each lone half of a surrogate pair, in names too, by U+FFFD. UTF-8 cannot represent it: strict readers
 * refuse the whole text, and providers that keep one answer with an error such as 500, which counts against them.
 */
export function wellFormedJson(value: object): string {
  const json = JSON.stringify(value);
  if (!json.includes(String.raw`\ud`)) return json;
  return json.replace(ESCAPE, (escape) => (escape.length === HALF_LENGTH ? '\ufffd' : escape));
}
