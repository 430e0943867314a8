import type { Connection } from 'mongoose';

import { collection } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import type { CredentialCipher } from '../credentials.ts';

/** All processes share it, and no rotation of `CREDENTIALS_KEY` may change it. */
export interface ServiceSecretRow {
  _id: string;
  /** AES-256-GCM, see shared/mongo/credentials.ts. */
  encrypted: string;
}

export const serviceSecretModel = collection<ServiceSecretRow>('service_secrets');

const PSEUDONYMS = 'pseudonyms';

/**
 * Makes pseudonyms of erased entities: `CREDENTIALS_KEY` as the database first saw it. Another key would give an erased
 * entity another name, and what is on its way would be stored after all.
 */
export async function readPseudonymKey(
  connection: Connection,
  cipher: CredentialCipher,
  credentialsKey: Buffer,
): Promise<Buffer> {
  const secrets = serviceSecretModel(connection);
  const place = `service_secrets/${PSEUDONYMS}`;
  const found = await secrets.findById(PSEUDONYMS).lean();
  if (found !== null) return Buffer.from(cipher.decrypt(found.encrypted, place), 'base64');
  try {
    await secrets.create({ _id: PSEUDONYMS, encrypted: cipher.encrypt(credentialsKey.toString('base64'), place) });
    return credentialsKey;
  } catch (error) {
    // Another process was first.
    if (isDuplicateKey(error)) return readPseudonymKey(connection, cipher, credentialsKey);
    throw error;
  }
}
