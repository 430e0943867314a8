import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares in constant time: digests have one length, so the comparison tells nothing about the secret's. */
export function isSameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}

/** What an `Authorization` header says: nothing, one bearer token, or something else. */
export type BearerHeader = { kind: 'none' } | { kind: 'token'; token: string } | { kind: 'other' };

export function readBearer(header: string | undefined): BearerHeader {
  const value = header?.trim() ?? '';
  if (value === '' || /^bearer$/i.test(value)) return { kind: 'none' };
  const token = /^bearer +(\S+)$/i.exec(value)?.[1];
  return token === undefined ? { kind: 'other' } : { kind: 'token', token };
}
