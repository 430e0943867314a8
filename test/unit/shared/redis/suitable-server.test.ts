import { describe, expect, it } from '@jest/globals';

import { adviceOnServer, faultOfSingle, redisServerFault } from '../../../../shared/redis/server-check.ts';

describe('a Redis server', () => {
  it.each([
    ['redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n', undefined],
    ['redis_version:6.2.14\r\nmaxmemory_policy:noeviction\r\n', 'Redis is version 6.2.14; it must be 7.0 or newer.'],
    ['redis_version:8.0.0\r\nmaxmemory_policy:allkeys-lru\r\n', expect.stringContaining('set it to noeviction')],
  ])('is judged by what it says of itself: %j', (info, fault) => {
    expect(redisServerFault(info)).toEqual(fault);
  });

  it.each([
    ['role:master\r\ncluster_enabled:0\r\n', undefined],
    ['role:slave\r\nmaster_host:10.0.0.7\r\nmaster_port:6380\r\n', expect.stringContaining('(10.0.0.7:6380,')],
    ['role:master\r\ncluster_enabled:1\r\n', expect.stringContaining('redis+cluster://')],
  ])('that is named alone is judged by whom it belongs to: %j', (info, fault) => {
    expect(faultOfSingle(info)).toEqual(fault);
  });
});

describe('the operator of a Redis server', () => {
  it.each([
    ['connected_slaves:0\r\n', []],
    ['connected_slaves:2\r\n', [expect.stringContaining('min-replicas-to-write 1')]],
    ['connected_slaves:2\r\nmin_slaves_good_slaves:2\r\n', []],
    ['aof_enabled:1\r\n', []],
    ['maxmemory:2147483648\r\n', []],
    ['maxmemory:0\r\n', [expect.stringContaining('Set maxmemory')]],
    ['aof_enabled:0\r\n', [expect.stringContaining('appendonly yes')]],
  ])('is advised by what it says: %j', (info, advice) => {
    expect(adviceOnServer(info)).toEqual(advice);
  });
});
