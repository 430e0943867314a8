import { describe, expect, it } from '@jest/globals';

import { createAddressGuard } from '../../../../api/http/address-guard.ts';
import { createPrincipalCache } from '../../../../api/http/authenticate.ts';
import type { Principal } from '../../../../shared/domain/principal.ts';

const ADDRESS = '198.51.100.1';
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** A guard in front of a database that knows one key, `right`, and counts its look-ups. */
function startGuard() {
  let now = 1_000_000;
  const lookUps: string[] = [];
  let running = 0;
  let mostRunning = 0;
  const principals = createPrincipalCache({
    async findByHash(hash) {
      lookUps.push(hash);
      running += 1;
      mostRunning = Math.max(mostRunning, running);
      await nextTurn();
      running -= 1;
      // Nothing reads more of it here.
      return hash === 'right' ? ({ keyId: 'key_1' } as Principal) : undefined;
    },
  });
  const guard = createAddressGuard({ now: () => now });
  return {
    guard,
    lookUps,
    mostRunning: () => mostRunning,
    pass: (ms: number) => (now += ms),
    find: (hash: string, address = ADDRESS) => guard.lookUp(address, () => principals.find(hash, now)),
  };
}

async function flood({ find }: ReturnType<typeof startGuard>, count: number, name = 'wrong') {
  const answers = await Promise.allSettled(Array.from({ length: count }, (_, index) => find(`${name}${index}`)));
  return answers.filter(({ status }) => status === 'rejected').length;
}

describe('a flood of invented keys', () => {
  it('reaches the database 60 times a minute and once a second more, a few at a time', async () => {
    const started = startGuard();
    expect(await flood(started, 500)).toBeGreaterThanOrEqual(435);
    expect(started.lookUps.length).toBeLessThanOrEqual(65);
    expect(started.mostRunning()).toBeLessThanOrEqual(4);

    for (let second = 0; second < 10; second += 1) {
      started.pass(1_000);
      await flood(started, 50, `second ${second} `);
    }
    expect(started.lookUps.length).toBeLessThanOrEqual(75);
  });

  it('says when the next key may be tried', async () => {
    const started = startGuard();
    await flood(started, 100);
    started.pass(20_000);
    await started.find('one a second');
    await expect(started.find('another')).rejects.toMatchObject({ code: 'rpm_exceeded', retryAfterSeconds: 40 });
    started.pass(60_001);
    expect(await started.find('right')).toEqual({ keyId: 'key_1' });
  });

  it('keeps no right key of the address out that comes in a quiet second, and none of another address', async () => {
    const started = startGuard();
    await flood(started, 100);
    expect(await started.find('right', '198.51.100.2')).toEqual({ keyId: 'key_1' });
    started.pass(1_000);
    expect(await started.find('right')).toEqual({ keyId: 'key_1' });
  });

  it('lets a hundred right keys of one address in at once', async () => {
    const { guard } = startGuard();
    const found = await Promise.all(
      Array.from({ length: 100 }, (_, index) => guard.lookUp(ADDRESS, () => nextTurn().then(() => index + 1))),
    );
    expect(found).toHaveLength(100);
  });

  it('is answered from memory while Redis has the address over its limit', () => {
    const { guard, pass } = startGuard();
    expect(guard.heldOf(ADDRESS)).toBeUndefined();
    guard.hold(ADDRESS, { requestsResetMs: 50_000, retryAfterMs: 20_000 });
    pass(5_000);
    expect(guard.heldOf(ADDRESS)).toEqual({ requests: 60, requestsResetMs: 45_000, retryAfterMs: 15_000 });
    pass(15_000);
    expect(guard.heldOf(ADDRESS)).toBeUndefined();
  });
});
