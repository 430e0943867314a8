import { beforeEach, expect, it } from '@jest/globals';

import { createLeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import type { LeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import { openRequestLab, SHARD } from '../../support/request-lab.ts';
import { useEach } from '../../support/use-service.ts';

const lab = useEach('lab', openRequestLab);
let first: LeaderLease;
let second: LeaderLease;
beforeEach(() => {
  first = createLeaderLease(lab.redis, lab.keyspace, 'first');
  second = createLeaderLease(lab.redis, lab.keyspace, 'second');
});

it('lets one process lead, however many ask at once', async () => {
  const processes = Array.from({ length: 20 }, (_, index) =>
    createLeaderLease(lab.redis, lab.keyspace, `process-${index}`),
  );

  const answers = await Promise.all(processes.map((process) => process.hold(SHARD, 'settle')));

  expect(answers.filter(Boolean)).toHaveLength(1);
});

it('stays with its holder as long as it is renewed', async () => {
  await first.hold(SHARD, 'settle');
  await lab.redis.pexpire(lab.keys.lease('settle'), 50);

  expect(await first.hold(SHARD, 'settle')).toBe(true);

  expect(await lab.redis.pttl(lab.keys.lease('settle'))).toBeGreaterThan(4_000);
  expect(await second.hold(SHARD, 'settle')).toBe(false);
});

it('ends by itself when its holder is silent', async () => {
  await first.hold(SHARD, 'settle');
  await lab.redis.pexpire(lab.keys.lease('settle'), 1);
  while ((await lab.redis.exists(lab.keys.lease('settle'))) === 1);

  expect(await second.hold(SHARD, 'settle')).toBe(true);
  expect(await first.hold(SHARD, 'settle')).toBe(false);
});

it('is free at once when its holder gives it up', async () => {
  await first.hold(SHARD, 'settle');
  await first.release(SHARD, 'settle');

  expect(await second.hold(SHARD, 'settle')).toBe(true);
});

it('cannot be given up by a process that does not hold it', async () => {
  await first.hold(SHARD, 'settle');
  await second.release(SHARD, 'settle');

  expect(await second.hold(SHARD, 'settle')).toBe(false);
});

it('is another one for each task and shard', async () => {
  await first.hold(SHARD, 'settle');

  expect(await second.hold(SHARD, 'sweep')).toBe(true);
  expect(await second.hold(SHARD + 1, 'settle')).toBe(true);
});
