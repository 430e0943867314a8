import { ACCESS_CHANNEL } from './access-flags.ts';
import type { RedisClient } from '../connection.ts';

/**
 * Hears which key or tenant has changed. `onMissed` is called after every reconnect, when messages may have been lost.
 * `client` is a subscriber; it may be the one of the chunk channel.
 */
export async function listenForAccessChanges(
  client: RedisClient,
  onChange: (id: string) => void,
  onMissed: () => void,
): Promise<void> {
  client.on('message', (channel: string, id: string) => {
    if (channel === ACCESS_CHANNEL) onChange(id);
  });
  await client.subscribe(ACCESS_CHANNEL);
  client.on('ready', onMissed);
}
