import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';

/** Tells workers that a request was cancelled, so that it stops at once and not with its next write or renewal. */
export interface CancelChannel {
  /** Safe to repeat. A message that is missed costs only time: the flag in the record is what counts. */
  subscribe(shard: number): Promise<void>;
}

/** `client` is a subscriber; `onCancel` hears the request's id. */
export function createCancelChannel(
  client: RedisClient,
  keyspace: Keyspace,
  onCancel: (requestId: string) => void,
): CancelChannel {
  const names = new Set<string>();
  const receive = (channel: string, requestId: string) => {
    if (names.has(channel)) onCancel(requestId);
  };
  client.on('message', receive);
  client.on('smessage', receive);
  return {
    async subscribe(shard) {
      const name = keyspace.shard(shard).cancelled;
      names.add(name);
      await (client.isCluster ? client.ssubscribe(name) : client.subscribe(name));
    },
  };
}
