import { connectMongo } from './connection.ts';
import { createModels, ensureIndexes } from './models.ts';

/** An index on a large collection takes its time. */
const INDEX_BUILD_MS = 120_000;

/**
 * Makes collections and indexes, on a connection of its own that may wait for them. Safe to repeat and to run in
 * several processes at once. Rejects with one sentence when MongoDB cannot be reached.
 */
export async function prepareDatabase(uri: string): Promise<void> {
  const connection = await connectMongo(uri, { callTimeoutMs: INDEX_BUILD_MS });
  try {
    await ensureIndexes(createModels(connection));
  } finally {
    await connection.close();
  }
}
