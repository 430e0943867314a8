import { isDuplicateKey } from './connection.ts';

/** A duplicate of what is inserted is the same: an earlier try wrote it, whose answer was lost, or another process. */
export async function insertOnce(insert: Promise<unknown>): Promise<void> {
  try {
    await insert;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}
