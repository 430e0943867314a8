import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { flagOf } from '../../../shared/domain/principal.ts';
import { LANE_LIMIT, openAdmissionLab } from '../../support/admission-lab.ts';
import type { AdmissionLab } from '../../support/admission-lab.ts';

let lab: AdmissionLab;
beforeAll(async () => {
  lab = await openAdmissionLab();
});
afterAll(async () => {
  await lab.close();
});

describe('an admission', () => {
  it('writes the request’s record, so that whoever finds it knows whose it is', async () => {
    const key = await lab.key();

    const { seq, now } = await key.admit({ requestId: 'req_record', tier: 'oloid' });

    expect(await lab.redis.hgetall(lab.keys.record('req_record'))).toMatchObject({
      state: 'accepted',
      fence: '0',
      seq: String(seq),
      tenant: key.principal.tenantId,
      key: key.principal.keyId,
      holdTokens: '20',
      tier: 'oloid',
      deadline: String(now + 600_000),
    });
    const lookedAtFrom = Number(await lab.redis.zscore(lab.keys.inflight, 'req_record'));
    expect(lookedAtFrom).toBeGreaterThan(now);
    expect(lookedAtFrom).toBeLessThanOrEqual(now + 15_000);
  });

  it('an admission has a place in the order of acceptance', async () => {
    const [first, second] = [await (await lab.key()).admit(), await (await lab.key()).admit()];
    expect(second.seq).toBeGreaterThan(first.seq);
  });

  it('that is sent again after a lost answer is the same admission', async () => {
    const key = await lab.key();
    const first = await key.admit({ requestId: 'req_twice' });
    const before = await lab.snapshot();

    const second = await key.admit({ requestId: 'req_twice' });

    expect(second).toMatchObject({ verdict: 'admitted', seq: first.seq, estimateTokens: 20, requests: 1, tokens: 20 });
    expect(await lab.snapshot()).toEqual(before);
  });

  it('that is sent again when a worker has the request already is no second one', async () => {
    const key = await lab.key();
    await key.admit({ requestId: 'req_running' });
    await lab.redis.hset(lab.keys.record('req_running'), 'state', 'running');

    await key.admit({ requestId: 'req_running' });

    expect(await key.figures()).toMatchObject({ heldMicro: 20_000_000 });
  });
});

describe('a refusal', () => {
  it.each([
    ['rpm', { rpm: 1 }],
    ['throttle', { chatRpm: 1 }],
    ['daily', { dailyRequests: 1 }],
    ['tpm', { tpm: 25 }],
  ] as const)('a refusal by %s takes nothing', async (verdict, limits) => {
    const key = await lab.key();
    await key.admitWith(limits);
    const before = await lab.snapshot();

    expect((await key.admitWith(limits)).verdict).toBe(verdict);

    expect(await lab.snapshot()).toEqual(before);
  });

  it('by the allowance of test keys takes nothing', async () => {
    const key = await lab.key({ mode: 'test', testDailyTokens: 1 }, 0);
    await key.admit();
    const before = await lab.snapshot();

    expect((await key.admit()).verdict).toBe('test_tokens');

    expect(await lab.snapshot()).toEqual(before);
  });

  it.each([
    ['credits', {}, 0],
    ['credits_in_flight', {}, 30],
    ['budget_in_flight', { monthlyTokenBudget: 30 }, 1_000_000],
  ] as const)('by %s takes the request count and nothing else', async (verdict, more, balance) => {
    const key = await lab.key(more, balance);
    if (balance > 0) await key.admit();
    const { requests, tokens } = await lab.store.count('req_look', key.principal, false);
    const countedIn = [lab.keys.keyRpm(key.principal.keyId), lab.keys.account(key.principal.tenantId)];
    const others = (all: Record<string, string>) =>
      Object.fromEntries(Object.entries(all).filter(([name]) => !countedIn.includes(name)));
    const [before, figures] = [await lab.snapshot(), await key.figures()];

    const refused = await key.admit();

    expect(refused).toMatchObject({ verdict, requests: requests + 1, tokens });
    expect(await key.figures()).toEqual(figures);
    const after = await lab.snapshot();
    for (const name of countedIn) expect(after[name]).not.toEqual(before[name]);
    expect(others(after)).toEqual(others(before));
  });

  it('by credits is limited by the rpm like any request', async () => {
    const key = await lab.key({}, 0);
    expect((await key.admitWith({ rpm: 1 })).verdict).toBe('credits');
    expect((await key.admitWith({ rpm: 1 })).verdict).toBe('rpm');
  });

  it('by a full queue takes the request count and says when it will have drained', async () => {
    const key = await lab.key();
    const waiting = lab.keys.wait('interactive');
    await lab.redis.rpush(waiting, ...Array.from({ length: LANE_LIMIT }, (_, index) => String(index)));
    try {
      await lab.redis.hset(lab.keys.queueStatistics('interactive'), 'gap:queue', '300.000');
      const first = await key.admit();
      expect(first).toMatchObject({ verdict: 'queue', requests: 1, tokens: 0, retryAfterMs: 3_000 });
      // The next caller is told another time.
      expect((await key.admit()).retryAfterMs).toBeGreaterThan(5_000);
      await lab.redis.lpop(waiting);
      expect((await key.admit()).verdict).toBe('admitted');
    } finally {
      await lab.redis.del(waiting, lab.keys.queueStatistics('interactive'));
    }
  });

  it.each(['revoked', 'suspended'] as const)(
    'by the flag "%s" counts at once and ends when it is lifted',
    async (verdict) => {
      const key = await lab.key();
      const { keyId, tenantId } = key.principal;
      const flag = lab.keys.blocked(verdict === 'revoked' ? flagOf({ keyId }) : tenantId);
      await lab.redis.set(flag, '1');

      expect(await key.admit()).toMatchObject({ verdict, tokens: 0 });
      expect((await lab.store.count('req_count', key.principal, true)).verdict).toBe(verdict);

      await lab.redis.del(flag);
      expect((await key.admit()).verdict).toBe('admitted');
    },
  );

  it('of a suspended tenant’s requests counts, so that they are limited too', async () => {
    const key = await lab.key();
    await lab.redis.set(lab.keys.blocked(key.principal.tenantId), '1');

    expect(await key.admitWith({ rpm: 2 })).toMatchObject({ verdict: 'suspended', requests: 1 });
    const { principal } = key;
    const limited = { ...principal, limits: { ...principal.limits, rpm: 2 } };
    expect(await lab.store.count('req_1', limited, true)).toMatchObject({ verdict: 'suspended', requests: 2 });
    expect((await key.admitWith({ rpm: 2 })).verdict).toBe('rpm');
    expect((await lab.store.count('req_2', limited, true)).verdict).toBe('rpm');
  });
});

describe('an admission that is taken back', () => {
  it('gives back its hold, its budget and its tokens, and keeps the request count', async () => {
    const key = await lab.key({ monthlyTokenBudget: 1_000 });
    await key.admit({ requestId: 'req_void' });

    expect(await lab.store.void('req_void', key.principal)).toBe('accepted');

    expect(await key.figures()).toMatchObject({ heldMicro: 0, budgetHeldTokens: 0 });
    expect(await lab.store.count('req_look', key.principal, false)).toMatchObject({ requests: 1, tokens: 0 });
    expect(await lab.redis.zscore(lab.keys.inflight, 'req_void')).toBeNull();
  });

  it('can be taken back again without giving anything twice', async () => {
    const key = await lab.key();
    await key.admit();
    await key.admit({ requestId: 'req_void_twice' });
    await lab.store.void('req_void_twice', key.principal);
    const before = await lab.snapshot();

    expect(await lab.store.void('req_void_twice', key.principal)).toBe('void');

    expect(await lab.snapshot()).toEqual(before);
    expect((await key.figures()).heldMicro).toBe(20_000_000);
  });

  it('leaves a tombstone that a late admission cannot pass, whichever comes first', async () => {
    const key = await lab.key();

    expect(await lab.store.void('req_late', key.principal)).toBe('missing');
    expect((await key.admit({ requestId: 'req_late' })).verdict).toBe('void');

    expect(await key.figures()).toMatchObject({ heldMicro: 0 });
    expect(await lab.redis.zscore(lab.keys.inflight, 'req_late')).toBeNull();
    expect(await lab.redis.pttl(lab.keys.record('req_late'))).toBeGreaterThan(3_000_000);
  });

  it('stays as it is when a worker already has it', async () => {
    const key = await lab.key();
    await key.admit({ requestId: 'req_claimed' });
    await lab.redis.hset(lab.keys.record('req_claimed'), 'state', 'running');

    expect(await lab.store.void('req_claimed', key.principal)).toBe('running');

    expect((await key.figures()).heldMicro).toBe(20_000_000);
  });
});
