import type { Logger } from '../../shared/logging/logger.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import type { RecordStore } from '../../shared/requests/record-store.ts';
import { createChunkChannel } from '../../shared/requests/channels.ts';
import type { StreamReader } from '../../shared/requests/answers.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { createRelayHub } from './hub.ts';
import type { RelayEvents, RelayHub } from './hub.ts';

/** Opens the path of answers from the workers to this ingress. */
export function openRelay(deps: {
  subscriber: RedisClient;
  keyspace: Keyspace;
  streams: StreamReader;
  records: RecordStore;
  events: Emitter<RelayEvents>;
  clock: Clock;
  closer: Closer;
  log: Logger;
}): RelayHub {
  const { subscriber, keyspace, streams, records, events, clock, closer, log } = deps;
  const hub = createRelayHub({
    channel: createChunkChannel(subscriber, keyspace, newId('ing')),
    streams,
    records,
    now: clock.now,
    events,
    log,
  });
  closer.defer('relay', () => {
    hub.close();
  });
  return hub;
}
