import { afterEach, beforeEach, expect, it } from '@jest/globals';

import { createShardSupervisor } from '../../../workers/shard-supervisor.ts';
import type { ShardSupervisor } from '../../../workers/shard-supervisor.ts';
import { createRecordingLog } from '../../support/recording-log.ts';

const nothing = () => Promise.resolve();
/** The worker of this shard is given nothing. */
const QUIET = 1;

let away: number[];
let supervisor: ShardSupervisor;
beforeEach(async () => {
  away = [];
  supervisor = createShardSupervisor({
    directory: { list: () => Promise.resolve([0, QUIET]), tenantsByShard: () => Promise.resolve([]) },
    settler: { settleShard: () => Promise.resolve(0), release: nothing },
    sweep: { sweepShard: nothing, idle: nothing, release: nothing },
    meet: nothing,
    listen: nothing,
    openWorkers: (shard) => [
      {
        concurrency: 1,
        quietMs: () => (shard === QUIET ? 60_000 : 0),
        running: () => 0,
        idleMs: () => 0,
        meanMs: () => 0,
        drain: nothing,
        close: nothing,
      },
    ],
    dispatcher: { dispatchShard: () => Promise.resolve(1_000), release: nothing },
    reconcile: nothing,
    publishNotices: nothing,
    measureOutbox: nothing,
    hasReconnectedRecently: (shard) => away.includes(shard),
    log: createRecordingLog(),
  });
  await supervisor.start();
});
afterEach(async () => {
  await supervisor.drain();
  await supervisor.close();
});

it('does not work while a shard is given nothing', async () => {
  await expect(supervisor.assertWorking()).rejects.toThrow('shard 1 has taken nothing for 60 s');
});

it('works while the Redis of such a shard is away, as the others go on', async () => {
  away = [QUIET];

  await expect(supervisor.assertWorking()).resolves.toBeUndefined();
});

it('works while it ends its last requests, however long they take', async () => {
  await supervisor.drain();

  await expect(supervisor.assertWorking()).resolves.toBeUndefined();
});
