import { createHash, randomBytes } from 'node:crypto';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Bytes from 248 up would make the first eight characters likelier than the rest, so they are discarded. */
const UNBIASED_BYTE_LIMIT = 248;

/** Random bytes are drawn in blocks: one system call serves about 170 ids. */
const POOL_BYTES = 4096;
let pool = Buffer.alloc(0);
let used = 0;

function nextByte(): number {
  if (used >= pool.length) {
    pool = randomBytes(POOL_BYTES);
    used = 0;
  }
  const byte = pool[used] ?? 0;
  used += 1;
  return byte;
}

/** `length` characters, each drawn evenly from 62. */
export function randomBase62(length: number): string {
  let text = '';
  while (text.length < length) {
    const byte = nextByte();
    if (byte < UNBIASED_BYTE_LIMIT) text += BASE62.charAt(byte % 62);
  }
  return text;
}

/** Prefixes of docs/spec.md#conventions. */
export type IdPrefix =
  | 'req'
  | 'key'
  | 'ten'
  | 'txn'
  | 'prv'
  | 'aud'
  | 'cs'
  | 'ing'
  | 'wrk'
  | 'whk'
  | 'evt'
  | 'dlv'
  | 'batch'
  | 'exp'
  | 'call'
  | 'del';

/** `<prefix>_` + 24 base62 characters: about 143 random bits. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${randomBase62(24)}`;
}

const ID_CHARACTERS = 24;

/** The same parts always give the same id, so writing twice stores once. */
export function derivedId(prefix: IdPrefix, ...parts: readonly string[]): string {
  let rest = BigInt(`0x${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`);
  let text = '';
  while (text.length < ID_CHARACTERS) {
    text += BASE62.charAt(Number(rest % 62n));
    rest /= 62n;
  }
  return `${prefix}_${text}`;
}
