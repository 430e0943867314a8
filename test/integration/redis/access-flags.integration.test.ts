import { describe, expect, it } from '@jest/globals';

import { createAccessFlags } from '../../../shared/redis/stores/access-flags.ts';
import { openRequestLab, SHARD } from '../../support/request-lab.ts';
import { openTestRedis } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

describe('a revocation', () => {
  const lab = useStarted('lab', openRequestLab);

  it('has its flag before MongoDB hears of it, and keeps it when MongoDB does not answer', async () => {
    const flags = createAccessFlags(lab.redis, lab.keyspace);
    const isBlocked = async () => (await lab.redis.exists(lab.keys.blocked('key_1'))) === 1;
    let wasBlocked = false;

    const revoking = flags.blockAround(SHARD, 'key_1', async () => {
      wasBlocked = await isBlocked();
      throw new Error('MongoDB is away');
    });

    await expect(revoking).rejects.toThrow('MongoDB is away');
    expect(wasBlocked).toBe(true);
    expect(await isBlocked()).toBe(true);
  });

  it('reaches MongoDB although Redis does not take the flag, and is reported as failed', async () => {
    let isRevoked = false;
    const gone = await openTestRedis('worker');
    gone.disconnect();

    const revoking = createAccessFlags(gone, lab.keyspace).blockAround(SHARD, 'key_2', () => {
      isRevoked = true;
      return Promise.resolve();
    });

    await expect(revoking).rejects.toThrow();
    expect(isRevoked).toBe(true);
  });
});
