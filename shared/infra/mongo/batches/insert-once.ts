import { isDuplicateKey } from '../connection.ts';

/** Inserts what has new and unique ids: a duplicate was written by an earlier try whose answer was lost. */
export async function insertOnce(insert: Promise<unknown>): Promise<void> {
  try {
    await insert;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}
