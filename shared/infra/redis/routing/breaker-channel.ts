import type { Breaker } from '../../../domain/routing/breaker.ts';
import { parseBreaker } from './breaker-store.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';

/**
 * Hears of every breaker that changes. `onMissed` is called after every reconnect, when messages may have been lost.
 * `client` is a subscriber (docs/architecture/facts.md section 5).
 */
export async function listenForBreakers(
  client: RedisClient,
  keyspace: Keyspace,
  onChange: (provider: string, breaker: Breaker) => void,
  onMissed: () => void,
): Promise<void> {
  const { channel } = keyspace.breakers;
  const receive = (from: string, message: string) => {
    if (from !== channel) return;
    const split = message.indexOf('\n');
    onChange(message.slice(0, split), parseBreaker(message.slice(split + 1)));
  };
  client.on('message', receive);
  client.on('smessage', receive);
  await (client.isCluster ? client.ssubscribe(channel) : client.subscribe(channel));
  client.on('ready', onMissed);
}
