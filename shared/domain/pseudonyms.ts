import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { putNewest } from './bounded-map.ts';

/**
 * Replaces a deleted entity in records, and a user in calls of providers. One entity always has one pseudonym, so sums
 * stay separate; keys keep anybody from finding the entity by trying names. Each tenant has its own key, so equal names
 * of two tenants have different pseudonyms.
 */
export type Pseudonyms = ReturnType<typeof createPseudonyms>;

const PREFIX = 'erased_';
const KEY_BYTES = 32;
const TAG_BYTES = 16;
const CHECK_BYTES = 6;
/** In base64; the check's length is the next constant. */
const TAG_CHARACTERS = 22;
/** Deriving a key costs more than using it. */
const TENANTS_MAX = 10_000;
/** Each request of an entity needs its pseudonym about four times, and making one costs two hashes. */
const KNOWN_MAX = 256;

/** `rootKey`: the tenants' keys derive from it (HKDF); another root key gives other pseudonyms. */
export function createPseudonyms(rootKey: Buffer) {
  const keys = new Map<string, Buffer>();

  function keyOf(tenantId: string): Buffer {
    let key = keys.get(tenantId);
    if (key === undefined) {
      key = Buffer.from(hkdfSync('sha256', rootKey, tenantId, 'parley entity pseudonyms', KEY_BYTES));
      putNewest(keys, tenantId, key, TENANTS_MAX);
    }
    return key;
  }

  function hash(tenantId: string, kind: 'entity' | 'user' | 'check', text: string, bytes: number): string {
    const digest = createHmac('sha256', keyOf(tenantId)).update(`${kind} ${text}`).digest();
    return digest.subarray(0, bytes).toString('base64url');
  }

  const withCheck = (tenantId: string, tag: string) => `${PREFIX}${tag}${hash(tenantId, 'check', tag, CHECK_BYTES)}`;

  const known = new Map<string, string>();

  return {
    of(tenantId: string, entityId: string): string {
      // No tenant id contains a space.
      const name = `${tenantId} ${entityId}`;
      let pseudonym = known.get(name);
      if (pseudonym === undefined) {
        pseudonym = withCheck(tenantId, hash(tenantId, 'entity', entityId, TAG_BYTES));
        putNewest(known, name, pseudonym, KNOWN_MAX);
      }
      return pseudonym;
    },

    /** A provider serves all tenants under one account and reads this instead of a tenant's name for its user. */
    ofUser: (tenantId: string, user: string): string => hash(tenantId, 'user', user, TAG_BYTES),

    /** `of` made this text: pseudonyms are not replaced again. */
    isOne(tenantId: string, text: string): boolean {
      if (!text.startsWith(PREFIX)) return false;
      const made = Buffer.from(withCheck(tenantId, text.slice(PREFIX.length, PREFIX.length + TAG_CHARACTERS)));
      const given = Buffer.from(text);
      return made.length === given.length && timingSafeEqual(made, given);
    },
  };
}

/** Shorter names occur inside many unrelated words. */
const ANYWHERE_FROM_CHARACTERS = 4;

/**
 * Replaces an entity's name wherever it occurs, but one of three characters or fewer only where it stands alone:
 * `line-1` names the entity `1`, `line-10` does not.
 */
export function hideName(text: string, name: string, instead: string): string {
  if (name === '') return text;
  if (name.length >= ANYWHERE_FROM_CHARACTERS) return text.replaceAll(name, () => instead);
  const literal = name.replaceAll(/[\^$\\.*+?()[\]{}|/]/g, String.raw`\$&`);
  return text.replaceAll(new RegExp(`(?<![\\p{L}\\p{N}])${literal}(?![\\p{L}\\p{N}])`, 'gu'), () => instead);
}
