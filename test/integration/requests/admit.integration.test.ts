import { describe, expect, it } from '@jest/globals';

import { LANE_LIMIT, openAdmissionLab } from '../../support/admission-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const lab = useStarted('lab', openAdmissionLab);

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
});

describe('a refusal', () => {
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
    const { requests, tokens } = await lab.store.count('req_look', key.principal, 'nothing');
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
});
