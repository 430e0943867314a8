import { beforeEach, describe, expect, it } from '@jest/globals';

import { dayOf, monthOf } from '../../../shared/domain/pricing.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { LANE_LIMIT, fill, openAdmissionLab, RATE } from '../../support/admission-lab.ts';
import { useStarted } from '../../support/use-service.ts';
import { moveUse } from '../../support/use-window.ts';

const MINUTE_MS = 60_000;
const MONTH = monthOf(Date.now());
const NONE = { rpm: null, tpm: null, inFlight: null };
const BODY = '{}';

const lab = useStarted('lab', openAdmissionLab);

beforeEach(async () => {
  await lab.redis.del(lab.keys.prioritized('interactive'));
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

  it('that is sent again finds that its request runs, and is none for a caller who does not wait', async () => {
    const key = await lab.key();
    const { tenantId } = key.principal;
    const { claim } = createRequestStore(lab.redis, lab.keyspace, { leaseMs: 10_000, disconnectGraceMs: 30_000 });
    const asked = { requestId: newId('req'), body: BODY, channel: '' };
    expect((await key.admit(asked)).verdict).toBe('admitted');
    await claim({ shard: key.principal.shard, requestId: asked.requestId, tenantId, fence: 1 });

    expect((await key.admit(asked)).verdict).toBe('void');
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

describe('a ceiling of a tenant', () => {
  it('of requests in flight does not count one whose record is gone', async () => {
    const key = await lab.key({ ceilings: { ...NONE, inFlight: 1 } });
    await key.admit({ requestId: 'req_gone' });
    await lab.redis.del(lab.keys.record('req_gone'));
    expect((await key.admit()).verdict).toBe('admitted');
  });
});

describe('the line of a queue', () => {
  it('has room for others when one tenant’s requests fill half of it', async () => {
    const [flood, other] = [await lab.key(), await lab.key()];
    const half = LANE_LIMIT / 2;

    expect(await fill(() => flood.admit({ body: BODY }))).toMatchObject({
      admitted: half,
      refused: { verdict: 'queue_share', requests: half + 1 },
    });
    expect((await other.admit({ body: BODY })).verdict).toBe('admitted');
  });

  it('counts what a worker has no longer', async () => {
    const flood = await lab.key();
    await fill(() => flood.admit({ body: BODY }));
    await lab.redis.zpopmin(lab.keys.prioritized('interactive'), 2);
    const { admitted } = await fill(() => flood.admit({ body: BODY }));
    expect(admitted).toBe(2);
  });
});

describe('the bodies of a tenant', () => {
  it('have 256 MiB together while they are open: a larger one is refused before another call can join it', async () => {
    const key = await lab.key();
    const idempotency = { name: newId('req'), fingerprint: 'f' };
    const [first, beyond] = [newId('req'), { largeBytes: 100 * 1024 * 1024, idempotency }];

    expect((await key.admit({ requestId: first, largeBytes: 200 * 1024 * 1024 })).verdict).toBe('admitted');
    expect((await key.admit(beyond)).verdict).toBe('bodies');
    expect((await key.admit(beyond)).verdict).toBe('bodies');
    expect((await key.admit()).verdict).toBe('admitted');

    await lab.store.void(first, key.principal);
    expect((await key.admit(beyond)).verdict).toBe('admitted');
  });
});

describe('the balance', () => {
  it('holds the estimate at the rates of prompt and completion', async () => {
    const key = await lab.key({}, 1_000);

    await key.admit({ promptTokens: 3, maxTokens: 5, rates: { promptMicro: 2 * RATE, completionMicro: 10 * RATE } });

    expect(await key.figures()).toMatchObject({ ledgerMicro: 1_000 * RATE, heldMicro: 56 * RATE, pendingMicro: 0 });
  });

  it('and the budget hold nothing for a free request, although both are overdrawn and no token is left of a minute', async () => {
    const key = await lab.key({ monthlyTokenBudget: 100, ceilings: { rpm: null, tpm: 10, inFlight: null } }, 100);
    expect(await key.admit({ promptTokens: 20, maxTokens: 0 })).toMatchObject({ verdict: 'admitted' });
    await key.publish({ balanceMicro: -7 * RATE, tokensByMonth: { [MONTH]: 130 } });

    const free = {
      isFree: true,
      promptTokens: 0,
      maxTokens: 0,
      rates: { promptMicro: 0, completionMicro: 0 },
    } as const;
    expect(await key.admitWith({ tpm: 10 }, free)).toMatchObject({ verdict: 'admitted' });

    expect(await key.figures()).toMatchObject({ heldMicro: 20 * RATE, budgetUsedTokens: 130 });
  });

  it('lets waiting take as long as recent requests took, from 1 to 30 s', async () => {
    const key = await lab.key({}, 20);
    await key.admit();
    const account = lab.keys.account(key.principal.tenantId);
    for (const [duration, retryAfterMs] of [
      [200, 1_000],
      [4_000, 4_000],
      [600_000, 30_000],
    ]) {
      await lab.redis.hset(account, 'duration', String(duration));
      expect(await key.admit()).toMatchObject({ verdict: 'credits_in_flight', retryAfterMs });
    }
  });
});

describe('the monthly token budget', () => {
  const budget = { monthlyTokenBudget: 100 };

  it('counts what is settled and what is not settled yet', async () => {
    const key = await lab.key(budget);
    await key.publish({ balanceMicro: 1e12, tokensByMonth: { [MONTH]: 60 } });
    await lab.redis.hset(lab.keys.account(key.principal.tenantId), `pendingTokens:${MONTH}`, 40);

    expect(await key.admit()).toMatchObject({ verdict: 'budget', retryAfterMs: 0 });
    expect((await key.figures()).budgetUsedTokens).toBe(100);
  });

  it('is that of its first acceptance for a request that is admitted again, as its charge will be', async () => {
    const key = await lab.key(budget);
    const acceptedAt = Date.UTC(2026, 0, 31);
    const account = lab.keys.account(key.principal.tenantId);
    await key.publish({ balanceMicro: 1_000 * RATE, tokensByMonth: { 202601: 100 } });
    expect((await key.admit({ acceptedAt })).verdict).toBe('budget');

    await key.publish({ balanceMicro: 1_000 * RATE, tokensByMonth: { 202601: 50, [MONTH]: 100 } });

    expect((await key.admit({ acceptedAt })).verdict).toBe('admitted');
    expect(await lab.redis.hmget(account, 'heldTokens:202601', `heldTokens:${MONTH}`)).toEqual(['20', null]);
  });

  it('is that of the month in Redis, to which the charge will count, whatever the clock of the ingress says', async () => {
    const key = await lab.key(budget);
    await key.publish({ balanceMicro: 1_000 * RATE, tokensByMonth: { [monthOf(Date.now())]: 100 } });

    await key.admit();

    expect((await key.admit({}, Date.now() + 31 * 86_400_000)).verdict).toBe('budget');
  });

  it('always admits one request while something is left and nothing is held', async () => {
    const key = await lab.key(budget);
    await key.publish({ balanceMicro: 1e12, tokensByMonth: { [MONTH]: 99 } });

    expect((await key.admit({ promptTokens: 5_000 })).verdict).toBe('admitted');
    expect((await key.admit()).verdict).toBe('budget_in_flight');
  });
});

describe('the tokens of a minute', () => {
  it('count what they are told to, and hold what is likely', async () => {
    const key = await lab.key();

    expect(await key.admitWith({ tpm: 100 }, { countedTokens: 90 })).toMatchObject({ verdict: 'admitted', tokens: 90 });
    expect(await key.figures()).toMatchObject({ heldMicro: 20 * RATE, budgetHeldTokens: 20 });
    expect(await key.admitWith({ tpm: 100 }, { countedTokens: 11 })).toMatchObject({ verdict: 'tpm' });
  });

  it('are never less than none, whatever is given back that was not counted here', async () => {
    const key = await lab.key();
    for (const requestId of ['req_early_1', 'req_early_2']) await key.admit({ requestId });
    await lab.redis.del(lab.keys.tokenWindow(key.principal.keyId));
    await key.admit();

    for (const requestId of ['req_early_1', 'req_early_2']) await lab.store.void(requestId, key.principal);

    expect((await lab.store.count('req_look', key.principal, 'nothing')).tokens).toBeGreaterThanOrEqual(0);
  });
});

describe('the daily allowance of test keys', () => {
  const test = { mode: 'test', testDailyTokens: 50 } as const;

  it('does not let tiny requests take all places: they are in flight like others', async () => {
    const key = await lab.key({ mode: 'test', ceilings: { ...NONE, inFlight: 50 } }, 0);

    expect(await fill(() => key.admit({ promptTokens: 1, maxTokens: 1 }))).toMatchObject({
      admitted: 50,
      refused: { verdict: 'max_in_flight' },
    });
  });

  it('is shared by the keys of a tenant and ends at midnight UTC', async () => {
    const key = await lab.key(test, 0);
    const sister = await lab.key({ ...test, tenantId: key.principal.tenantId }, 0);

    expect((await key.admit()).verdict).toBe('admitted');
    expect((await sister.admit()).verdict).toBe('admitted');
    // The part that they do not take comes back.
    const early = await key.admit();
    expect([early.verdict, early.retryAfterMs]).toEqual(['test_tokens_in_flight', 1_000]);

    await lab.redis.del(lab.keys.open(key.principal.tenantId));
    const refused = await key.admit();

    // They took all that they held: ten tokens are left, as many as the prompt has.
    expect(refused.verdict).toBe('test_tokens');
    expect(refused.retryAfterMs).toBe(86_400_000 - (refused.now % 86_400_000));
  });

  it.each(['void', 'cancel'] as const)('gets back on its own day what %s ends after midnight', async (way) => {
    const key = await lab.key(test, 0);
    const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: 60_000 });
    const yesterday = Date.now() - 86_400_000;
    const allowanceOf = (time: number) => lab.redis.get(lab.keys.testAllowance(key.principal.tenantId, dayOf(time)));
    await key.admit({ requestId: `req_today_${way}` });
    await key.admitAlone({ requestId: `req_midnight_${way}` }, yesterday);
    expect([await allowanceOf(yesterday), await allowanceOf(Date.now())]).toEqual(['20', '20']);

    if (way === 'void') await lab.store.void(`req_midnight_${way}`, key.principal);
    else await records.cancel(key.principal, `req_midnight_${way}`);

    expect([await allowanceOf(yesterday), await allowanceOf(Date.now())]).toEqual(['0', '20']);
  });

  it('is that of the day in Redis, whatever the clock of the ingress says', async () => {
    const key = await lab.key(test, 0);
    await key.admit();

    await key.admit({}, Date.now() + 86_400_000);

    expect((await key.admit({}, Date.now() - 86_400_000)).verdict).toBe('test_tokens_in_flight');
  });

  it('lets a request in whose prompt leaves some of the rest for an answer, and no more than that', async () => {
    const key = await lab.key({ mode: 'test', testDailyTokens: 50 }, 0);
    for (let count = 0; count < 2; count += 1) await key.admit();

    // Ten tokens are left.
    const isRefused = { verdict: 'test_tokens_in_flight' };
    expect(await key.admit({ promptTokens: 10, maxTokens: 100 })).toMatchObject(isRefused);
    expect(await key.admit({ promptTokens: 9, maxTokens: 100, queue: 'batch' })).toMatchObject({
      verdict: 'test_tokens',
    });
    const requestId = 'req_last_of_day';
    expect((await key.admit({ promptTokens: 9, maxTokens: 100, requestId })).verdict).toBe('admitted');
    expect(await lab.redis.hget(lab.keys.record(requestId), 'holdTokens')).toBe('10');
    expect(await key.admit({ promptTokens: 1, maxTokens: 1 })).toMatchObject(isRefused);
  });
});

describe('what is kept of the last minute', () => {
  it('goes by itself when the key is used no more', async () => {
    const key = await lab.key();
    await key.admitWith({ chatRpm: 9, dailyRequests: 9 });

    const { keyId } = key.principal;
    const { keyRpm, throttle, tokenWindow, daily } = lab.keys;
    for (const name of [keyRpm(keyId), throttle('chat', keyId), tokenWindow(keyId), daily(keyId)])
      expect(await lab.redis.pttl(name)).toBeGreaterThan(2 * MINUTE_MS);
  });

  it('is trimmed once a minute, and lives on while the key is used', async () => {
    const key = await lab.key();
    const { keyId } = key.principal;
    const log = lab.keys.keyRpm(keyId);
    for (let count = 0; count < 3; count += 1) await key.admit();
    await key.pass(MINUTE_MS / 2);
    await key.admit();
    await key.pass(MINUTE_MS / 2);
    expect(await key.admit()).toMatchObject({ requests: 2 });
    expect(await lab.redis.zcard(log)).toBe(5);

    // This stands for one that was trimmed a minute ago, and not since.
    await lab.redis.hset(lab.keys.tokenWindow(keyId), 'kept', Date.now() - 2 * MINUTE_MS);
    for (const name of [log, lab.keys.tokenWindow(keyId)]) await lab.redis.pexpire(name, 2 * MINUTE_MS);
    // It is looked at once a second.
    await moveUse(lab.redis, lab.keys.tokenWindow(keyId), 1);
    await key.admit();

    expect(await lab.redis.zcard(log)).toBe(3);
    for (const name of [log, lab.keys.tokenWindow(keyId)])
      expect(await lab.redis.pttl(name)).toBeGreaterThan(2.5 * MINUTE_MS);
  });
});

describe('the logs of a key', () => {
  it.each([
    ['a line of a batch', { queue: 'batch' }],
    ['a request of the other endpoint', { endpoint: 'chat' }],
  ] as const)('live on where %s comes first in each second', async (_what, first) => {
    const key = await lab.key();
    const { keyId } = key.principal;
    const limits = { chatRpm: 9, streamRpm: 9, rpm: 100 };
    await key.admitWith(limits, { endpoint: 'chat.stream' });
    const { keyRpm, throttle, tokenWindow } = lab.keys;
    const logs = [keyRpm(keyId), throttle('chat.stream', keyId)];

    // This stands for lives that were last lengthened more than a minute ago.
    for (const name of logs) await lab.redis.pexpire(name, MINUTE_MS);
    await lab.redis.hset(tokenWindow(keyId), 'kept', Date.now() - 2 * MINUTE_MS);
    await moveUse(lab.redis, tokenWindow(keyId), 1);
    await key.admitWith(limits, first);
    await key.admitWith(limits, { endpoint: 'chat.stream' });

    for (const name of logs) expect(await lab.redis.pttl(name)).toBeGreaterThan(2.5 * MINUTE_MS);
  });
});

describe('the requests of a day, of a server whose clock is put back,', () => {
  it('leave the day as those before and after them do', async () => {
    const key = await lab.key();
    const limits = { dailyRequests: 2 };
    await key.admitWith(limits);
    // The minute of the first is ahead now, and the second comes before it.
    await key.pass(-30 * MINUTE_MS);
    await key.admitWith(limits);
    expect((await key.admitWith(limits)).verdict).toBe('daily');

    await key.pass(26 * 60 * MINUTE_MS);

    for (let count = 0; count < 2; count += 1) expect((await key.admitWith(limits)).verdict).toBe('admitted');
  });
});
