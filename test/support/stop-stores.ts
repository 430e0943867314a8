import { rm } from 'node:fs/promises';

import { forgetStores, rememberedStores } from './running-stores.ts';

/** jest's globalTeardown: ends what start-stores.ts started, when its last user is done. */
export default async function stopStores(): Promise<void> {
  const stores = rememberedStores();
  if (stores === undefined) return;
  stores.users -= 1;
  if (stores.users > 0) return;
  forgetStores();
  for (const server of stores.servers.reverse()) await server.stop();
  await rm(stores.dataDir, { recursive: true, force: true });
}
