import { createHash, hash, timingSafeEqual } from 'node:crypto';

import type { KeyMode } from '../contracts/space.ts';

/** `<prefix>_sk_<mode>_` + 32 base62 characters; the last 6 are a checksum (docs/spec.md#authentication). */
const RANDOM_CHARACTERS = 26;
const CHECKSUM_CHARACTERS = 6;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** docs/spec.md#scopes. */
export const SCOPES = [
  '*',
  'chat',
  'chat.stream',
  'embeddings',
  'keys',
  'usage',
  'webhooks',
  'entities',
  'billing',
  'compliance',
] as const;
export type Scope = (typeof SCOPES)[number];

/** Refuses junk without a database look-up; it is no protection. */
function checksumOf(body: string): string {
  let number = hash('sha256', body, 'buffer').readUIntBE(0, 6);
  let text = '';
  while (text.length < CHECKSUM_CHARACTERS) {
    text += BASE62.charAt(number % 62);
    number = Math.floor(number / 62);
  }
  return text;
}

export type NewApiKey = ReturnType<typeof createApiKey>;

/** `random` is 26 base62 characters. */
export function createApiKey(prefix: string, mode: KeyMode, random: string) {
  const body = `${prefix}_sk_${mode}_${random.slice(0, RANDOM_CHARACTERS)}`;
  const value = body + checksumOf(body);
  return {
    /** Shown to its owner once and stored nowhere. */
    value,
    hash: hashApiKey(value),
    redactedValue: `${prefix}_sk_${mode}_…${value.slice(-4)}`,
  };
}

/** Longer text is no key, whatever the prefix. */
export const API_KEY_LENGTH_MAX = 128;

/** Checks form and checksum only. */
export function isApiKey(value: string, prefix: string): boolean {
  if (value.length > API_KEY_LENGTH_MAX) return false;
  const match = /^([a-z][a-z0-9]*_sk_(?:live|test)_)([0-9A-Za-z]{26})([0-9A-Za-z]{6})$/.exec(value);
  if (match === null || !value.startsWith(`${prefix}_sk_`)) return false;
  return checksumOf(value.slice(0, -CHECKSUM_CHARACTERS)) === match[3];
}

/** Tells whether `value` begins as this service's keys do; whether it is one is another question (`isApiKey`). */
export function looksLikeApiKey(value: string, prefix: string): boolean {
  return ['live', 'test'].some((mode) => value.startsWith(`${prefix}_sk_${mode}_`));
}

/** Keys are random, so a plain SHA-256 is enough: there is no dictionary to try. */
export function hashApiKey(value: string): string {
  return hash('sha256', value, 'hex');
}

export function allowsScope(granted: readonly string[], wanted: Scope): boolean {
  return granted.includes('*') || granted.includes(wanted);
}

/** Constant time: digests have one length, so the secret's stays unknown. */
export function isSameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}

/** Empty: no `Authorization` header was sent; undefined: it says something else. */
export function bearerTokenOf(header: string | undefined): string | undefined {
  const value = header?.trim() ?? '';
  if (value === '' || /^bearer$/i.test(value)) return '';
  return /^bearer +(\S+)$/i.exec(value)?.[1];
}
