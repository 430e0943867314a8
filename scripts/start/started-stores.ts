import { existsSync } from 'node:fs';
import { join } from 'node:path';

import type { Environment } from '../embedded/find-program.ts';
import { loadState } from './state.ts';

/** The stores of this folder's `npm start`, as settings; empty if it was never started. */
export async function startedStores(env: Environment): Promise<Environment> {
  const file = join(env['DATA_DIR'] ?? '.data', 'start.json');
  if (!existsSync(file)) return {};
  const { stores, credentialsKey } = await loadState(file);
  return { ...stores, CREDENTIALS_KEY: credentialsKey };
}
