import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_CHARACTERS = 8;
const FORM = /^v1:([0-9a-f]{8}):(.*)$/;

export type CredentialCipher = ReturnType<typeof createCredentialCipher>;

export const prefixOf = (keyId: string) => `v1:${keyId}:`;

interface CredentialKey {
  id: string;
  key: Buffer;
}

function toKey(key: Buffer): CredentialKey {
  const digest = createHash('sha256').update('parley credentials key').update(key).digest('hex');
  return { id: digest.slice(0, KEY_ID_CHARACTERS), key };
}

function open(bytes: Buffer, { key }: CredentialKey, place: string | undefined): string {
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  if (place !== undefined) decipher.setAAD(Buffer.from(place));
  return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8');
}

/** Texts of earlier versions name neither their key nor their place. */
function openUnnamed(bytes: Buffer, keys: readonly CredentialKey[]): string {
  const faults: unknown[] = [];
  for (const key of keys) {
    try {
      return open(bytes, key, undefined);
    } catch (error) {
      faults.push(error);
    }
  }
  throw new Error('No key of CREDENTIALS_KEY and CREDENTIALS_KEYS decrypts this text.', { cause: faults[0] });
}

/**
 * Encrypts credentials at rest with `CREDENTIALS_KEY` (docs/spec.md#credentials-key). `place`: collection and id of the
 * row, such as `providers/openai`; in another row the text cannot be decrypted. `others`: more keys that decrypt.
 */
export function createCredentialCipher(current: Buffer, others: readonly Buffer[] = []) {
  const first = toKey(current);
  const rest = others.map(toKey).filter(({ id }) => id !== first.id);
  const keys = [first, ...rest];
  return {
    /** The first one encrypts. */
    keyIds: [first.id, ...rest.map(({ id }) => id)] as const,

    encrypt(plain: string, place: string): string {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(ALGORITHM, first.key, iv).setAAD(Buffer.from(place));
      const data = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
      return `${prefixOf(first.id)}${Buffer.concat([iv, cipher.getAuthTag(), data]).toString('base64')}`;
    },

    /** Throws for an unknown key, a changed text or another place. */
    decrypt(encrypted: string, place: string): string {
      const [, id, text] = FORM.exec(encrypted) ?? [];
      if (id === undefined || text === undefined) return openUnnamed(Buffer.from(encrypted, 'base64'), keys);
      const key = keys.find((one) => one.id === id);
      if (key === undefined)
        throw new Error(
          `The key ${id} is neither CREDENTIALS_KEY nor one of CREDENTIALS_KEYS; a secret in MongoDB needs it, so add it to CREDENTIALS_KEYS.`,
        );
      return open(Buffer.from(text, 'base64'), key, place);
    },
  };
}
