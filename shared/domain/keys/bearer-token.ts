import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares in constant time: digests have one length, so the comparison tells nothing about the secret's. */
export function isSameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}

/** The bearer token of an `Authorization` header. Empty: none was sent; undefined: the header says something else. */
export function bearerTokenOf(header: string | undefined): string | undefined {
  const value = header?.trim() ?? '';
  if (value === '' || /^bearer$/i.test(value)) return '';
  return /^bearer +(\S+)$/i.exec(value)?.[1];
}
