import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

/**
 * What stands for an entity that was deleted: the same for the same entity, so that sums stay apart, and made with a
 * key, so that nobody finds the entity by trying names. A tenant's key is its own: another tenant's entity of the same
 * name has another pseudonym.
 */
export interface Pseudonyms {
  of(tenantId: string, entityId: string): string;
  /** Whether a text was made by `of`: what has been replaced is not replaced again. */
  isOne(tenantId: string, text: string): boolean;
}

const PREFIX = 'erased_';
const KEY_BYTES = 32;
const TAG_BYTES = 16;
const CHECK_BYTES = 6;
/** Base64 of the tag, and behind it that of the check. */
const TAG_CHARACTERS = 22;
/** Deriving a key costs more than using it. */
const TENANTS_MAX = 10_000;
/** Each request of an entity asks some four times for its pseudonym, which costs two hashes. */
const KNOWN_MAX = 256;

/** `rootKey`: from which the keys of tenants are derived (HKDF); with another one the names are others. */
export function createPseudonyms(rootKey: Buffer): Pseudonyms {
  const keys = new Map<string, Buffer>();

  function keyOf(tenantId: string): Buffer {
    let key = keys.get(tenantId);
    if (key === undefined) {
      if (keys.size >= TENANTS_MAX) keys.clear();
      key = Buffer.from(hkdfSync('sha256', rootKey, tenantId, 'parley entity pseudonyms', KEY_BYTES));
      keys.set(tenantId, key);
    }
    return key;
  }

  function hash(tenantId: string, kind: 'entity' | 'check', text: string, bytes: number): string {
    const digest = createHmac('sha256', keyOf(tenantId)).update(`${kind} ${text}`).digest();
    return digest.subarray(0, bytes).toString('base64url');
  }

  const withCheck = (tenantId: string, tag: string) => `${PREFIX}${tag}${hash(tenantId, 'check', tag, CHECK_BYTES)}`;

  const known = new Map<string, string>();

  return {
    of(tenantId, entityId) {
      // No id of a tenant has a space.
      const name = `${tenantId} ${entityId}`;
      let pseudonym = known.get(name);
      if (pseudonym === undefined) {
        if (known.size >= KNOWN_MAX) known.clear();
        pseudonym = withCheck(tenantId, hash(tenantId, 'entity', entityId, TAG_BYTES));
        known.set(name, pseudonym);
      }
      return pseudonym;
    },

    isOne(tenantId, text) {
      if (!text.startsWith(PREFIX)) return false;
      const made = Buffer.from(withCheck(tenantId, text.slice(PREFIX.length, PREFIX.length + TAG_CHARACTERS)));
      const given = Buffer.from(text);
      return made.length === given.length && timingSafeEqual(made, given);
    },
  };
}

/** A shorter name is a part of many words that mean somebody or something else. */
const ANYWHERE_FROM_CHARACTERS = 4;

/**
 * The text with something else in the place of an entity's name, wherever it stands; a name of three characters or less
 * only where it stands alone: of the entity `1`, `line-1` speaks, and `line-10` does not.
 */
export function hideName(text: string, name: string, instead: string): string {
  if (name === '') return text;
  if (name.length >= ANYWHERE_FROM_CHARACTERS) return text.replaceAll(name, () => instead);
  const literal = name.replaceAll(/[\^$\\.*+?()[\]{}|/]/g, String.raw`\$&`);
  return text.replaceAll(new RegExp(`(?<![\\p{L}\\p{N}])${literal}(?![\\p{L}\\p{N}])`, 'gu'), () => instead);
}
