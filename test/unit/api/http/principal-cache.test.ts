import { describe, expect, it } from '@jest/globals';

import { createPrincipalCache } from '../../../../api/http/authenticate.ts';
import type { PrincipalCache } from '../../../../api/http/authenticate.ts';
import type { Principal } from '../../../../shared/domain/principal.ts';
import { principalOf } from '../../../support/request-lab.ts';

const PRINCIPAL = principalOf({ keyId: 'key_1', tenantId: 'ten_1' });
const REVOKED: Principal = { ...PRINCIPAL, keyStatus: 'revoked' };
const AWAY = new Error('MongoDB does not answer');

/** A database whose answers a test gives when it wants to, in the order of the calls. */
function startCache() {
  const calls: PromiseWithResolvers<Principal | undefined>[] = [];
  const cache = createPrincipalCache({
    findByHash() {
      const call = Promise.withResolvers<Principal | undefined>();
      calls.push(call);
      return call.promise;
    },
  });
  /** Looks the key up; a call to the database is answered with `stored`, or fails where it is an error. */
  async function find(now: number, stored?: Principal | Error): Promise<Principal | undefined> {
    const before = calls.length;
    const found = cache.find('hash', now);
    const call = calls[before];
    if (stored instanceof Error) call?.reject(stored);
    else call?.resolve(stored);
    return found;
  }
  return { cache, calls, find };
}

describe('the principal cache', () => {
  it('asks the database again after 10 s, and not before', async () => {
    const { calls, find } = startCache();
    await find(0, PRINCIPAL);

    expect(await find(9_999)).toBe(PRINCIPAL);
    expect(calls).toHaveLength(1);
    expect(await find(10_000, REVOKED)).toBe(REVOKED);
  });

  it('asks again for an unknown key after 5 s, and not before', async () => {
    const { calls, find } = startCache();
    await find(0, undefined);

    expect(await find(4_999)).toBeUndefined();
    expect(calls).toHaveLength(1);
    expect(await find(5_000, PRINCIPAL)).toBe(PRINCIPAL);
  });

  it('the principal cache asks once for many who wait', async () => {
    const { cache, calls } = startCache();
    const waiting = [cache.find('hash', 0), cache.find('hash', 0), cache.find('hash', 1)];
    calls[0]?.resolve(PRINCIPAL);

    expect(await Promise.all(waiting)).toEqual([PRINCIPAL, PRINCIPAL, PRINCIPAL]);
    expect(calls).toHaveLength(1);
  });

  it.each([
    [
      'an announcement',
      (cache: PrincipalCache) => {
        cache.invalidate('key_1');
      },
    ],
    [
      'announcements that may have been missed',
      (cache: PrincipalCache) => {
        cache.clear();
      },
    ],
  ])('still knows the key as no stranger’s after %s', async (_what, doubt) => {
    const { cache, find } = startCache();
    await find(0, PRINCIPAL);

    doubt(cache);

    expect([cache.isKnown('hash', 1), cache.fresh('hash', 1)]).toEqual([true, undefined]);
    await expect(find(1, AWAY)).rejects.toBe(AWAY);
    await find(2, undefined);
    expect(cache.isKnown('hash', 2)).toBe(false);
  });

  it('does not keep an answer that was on its way when the key was revoked', async () => {
    const { cache, calls, find } = startCache();
    const early = cache.find('hash', 0);

    cache.invalidate('key_1');
    calls[0]?.resolve(PRINCIPAL);
    await early;

    expect(await find(1, REVOKED)).toBe(REVOKED);
  });

  it.each([
    ['a key', PRINCIPAL],
    ['no key', undefined],
  ])(
    'does not keep an answer that was on its way when announcements may have been missed: %s',
    async (_what, stored) => {
      const { cache, calls, find } = startCache();
      const early = cache.find('hash', 0);

      cache.clear();
      calls[0]?.resolve(stored);
      await early;

      expect(await find(1, REVOKED)).toBe(REVOKED);
    },
  );

  it('does not keep that a key is unknown when one was announced meanwhile', async () => {
    const { cache, calls, find } = startCache();
    const early = cache.find('hash', 0);

    cache.invalidate('key_1');
    calls[0]?.resolve(undefined);
    await early;

    expect(await find(1, PRINCIPAL)).toBe(PRINCIPAL);
  });

  it('lets nobody who asks after a revocation wait for an answer from before it', async () => {
    const { cache, calls } = startCache();
    const early = cache.find('hash', 0);
    cache.invalidate('key_1');

    const late = cache.find('hash', 1);
    calls[1]?.resolve(REVOKED);
    calls[0]?.resolve(PRINCIPAL);

    expect(await late).toBe(REVOKED);
    await early;
    expect(await cache.find('hash', 2)).toBe(REVOKED);
  });

  it('asks again for a key that was unknown when invalidations may have been missed', async () => {
    const { cache, find } = startCache();
    expect(await find(0)).toBeUndefined();

    cache.clear();

    expect(await find(1, PRINCIPAL)).toBe(PRINCIPAL);
  });

  it('answers for a known key up to 15 minutes while the database is away, and rejects after that', async () => {
    const { find } = startCache();
    await find(0, PRINCIPAL);

    expect(await find(10_000, AWAY)).toBe(PRINCIPAL);
    expect(await find(899_999, AWAY)).toBe(PRINCIPAL);
    await expect(find(900_000, AWAY)).rejects.toBe(AWAY);
  });

  it('does not wait for the database again right after it failed', async () => {
    const { calls, find } = startCache();
    await find(0, PRINCIPAL);
    await find(10_000, AWAY);

    expect(await find(19_999)).toBe(PRINCIPAL);
    expect(calls).toHaveLength(2);
    expect(await find(20_000, REVOKED)).toBe(REVOKED);
  });

  it('rejects for a key it does not know while the database is away: never "unknown"', async () => {
    const { find } = startCache();
    await expect(find(0, AWAY)).rejects.toBe(AWAY);
    await find(1, undefined);
    await expect(find(5_001, AWAY)).rejects.toBe(AWAY);
  });

  it('is bounded: 20,000 keys push the oldest out', async () => {
    let calls = 0;
    const cache = createPrincipalCache({
      findByHash: () => {
        calls += 1;
        return Promise.resolve(undefined);
      },
    });
    for (let index = 0; index <= 20_000; index += 1) await cache.find(String(index), 0);

    await cache.find('20000', 1);
    expect(calls).toBe(20_001);
    await cache.find('0', 1);
    expect(calls).toBe(20_002);
  });
});
