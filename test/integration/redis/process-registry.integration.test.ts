import { expect, it } from '@jest/globals';

import { createServing } from '../../../shared/lifecycle/readiness.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { createProcessRegistry, PROTOCOL, untilWorkersKnow } from '../../../shared/redis/stores/process-registry.ts';
import type { ProcessEntry } from '../../../shared/redis/stores/process-registry.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { openTestRedis, uniqueName } from '../../support/stores.ts';
import { waitFor } from '../../support/wait-for.ts';
import { useStarted } from '../../support/use-service.ts';

const redis = useStarted('redis', () => openTestRedis('producer'));

const entryOf = (id: string, own: Partial<ProcessEntry> = {}): ProcessEntry => ({
  ...{ id, kind: 'worker', version: '0.1.0', commit: 'unknown', protocol: PROTOCOL, host: 'a', pid: 1 },
  ...{ uptimeSeconds: 1, running: 0, draining: false },
  ...own,
});

it('forgets a process that is not heard of any more', async () => {
  const keyspace = createKeyspace(uniqueName('processes'));
  const registry = createProcessRegistry(redis, keyspace);
  await Promise.all(['wrk_a', 'wrk_b'].map((id) => registry.beat(entryOf(id))));
  expect((await registry.list()).map(({ id }) => id).sort()).toEqual(['wrk_a', 'wrk_b']);

  await redis.del(keyspace.processes.entry('wrk_a'));

  expect(await registry.list()).toEqual([entryOf('wrk_b')]);
  expect(await redis.smembers(keyspace.processes.ids)).toEqual(['wrk_b']);
});

it('a new ingress waits, and says so, until the workers that take requests know its protocol', async () => {
  const registry = createProcessRegistry(redis, createKeyspace(uniqueName('processes')));
  const serving = createServing();
  const log = createRecordingLog();
  const older = { protocol: PROTOCOL - 1 };
  await Promise.all([registry.beat(entryOf('wrk_old', older)), registry.beat(entryOf('wrk_new'))]);
  let isOver = false;

  const waiting = untilWorkersKnow(registry, serving, log).then(() => (isOver = true));
  const said = await waitFor(async () => {
    const { checks } = await serving.check();
    return checks['workers'];
  }, 'the ingress to say why');

  expect(said).toBe(`1 of 2 workers do not know protocol ${PROTOCOL}; replace the workers first`);
  expect(isOver).toBe(false);
  await registry.beat(entryOf('wrk_old', { ...older, draining: true }));
  await waiting;
});

it('an ingress waits for no worker where none runs', async () => {
  const registry = createProcessRegistry(redis, createKeyspace(uniqueName('processes')));

  await untilWorkersKnow(registry, createServing(), createRecordingLog());

  expect(await registry.list()).toEqual([]);
});
