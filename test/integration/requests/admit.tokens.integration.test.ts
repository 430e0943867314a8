import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { dayOf } from '../../../shared/domain/pricing.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { fill, openAdmissionLab, RATE } from '../../support/admission-lab.ts';
import type { AdmissionLab } from '../../support/admission-lab.ts';
import { moveUse, usedOf } from '../../support/use-window.ts';

/** Tokens leave by the second, and a second only whole. */
const GONE_MS = 61_000;
const MINUTE_MS = 60_000;
const SLACK_MS = 5_000;

let lab: AdmissionLab;
beforeAll(async () => {
  lab = await openAdmissionLab();
});
afterAll(async () => {
  await lab.close();
});

describe('the tokens of a minute', () => {
  it('count the prompt and the recent mean completion, at most max_tokens', async () => {
    const key = await lab.key();
    // 500 stand for the completion of a key that has had none.
    expect(await key.admit({ promptTokens: 40, maxTokens: 4_096 })).toMatchObject({ estimateTokens: 540, tokens: 540 });

    await lab.redis.set(lab.keys.meanCompletion(key.principal.keyId), '120');
    expect(await key.admit({ promptTokens: 40, maxTokens: 4_096 })).toMatchObject({ estimateTokens: 160, tokens: 700 });
    expect(await key.admit({ promptTokens: 40, maxTokens: 7 })).toMatchObject({ estimateTokens: 47, tokens: 747 });
  });

  it('count what they are told to, and hold what is likely', async () => {
    const key = await lab.key();

    expect(await key.admitWith({ tpm: 100 }, { countedTokens: 90 })).toMatchObject({ verdict: 'admitted', tokens: 90 });
    expect(await key.figures()).toMatchObject({ heldMicro: 20 * RATE, budgetHeldTokens: 20 });
    expect(await key.admitWith({ tpm: 100 }, { countedTokens: 11 })).toMatchObject({ verdict: 'tpm' });
  });

  it('the tokens of a minute are admitted up to the limit', async () => {
    const key = await lab.key();

    const { admitted, refused } = await fill(() => key.admitWith({ tpm: 100 }));

    expect(admitted).toBe(5);
    expect(refused).toMatchObject({ verdict: 'tpm', tokens: 100 });
  });

  it('never exceed the limit in any true minute, however they arrive', async () => {
    const key = await lab.key();
    const accepted: { at: number; tokens: number }[] = [];
    let passed = 0;
    for (let step = 1; step <= 80; step += 1) {
      const wait = (step * 7_919) % 17_000;
      await key.pass(wait);
      passed += wait;
      const answer = await key.admitWith({ tpm: 100 }, { promptTokens: 1 + ((step * 31) % 50) });
      if (answer.verdict === 'admitted') accepted.push({ at: answer.now + passed, tokens: answer.estimateTokens });
    }
    const inMinute = (from: number) =>
      accepted.filter(({ at }) => at >= from && at < from + MINUTE_MS).reduce((sum, { tokens }) => sum + tokens, 0);
    expect(Math.max(...accepted.map(({ at }) => inMinute(at)))).toBeLessThanOrEqual(100);
    expect(accepted.length).toBeGreaterThan(20);
  });

  it('let a request in that is larger than the limit when the window is empty, and then it is full', async () => {
    const key = await lab.key();

    expect(await key.admitWith({ tpm: 100 }, { promptTokens: 5_000 })).toMatchObject({
      verdict: 'admitted',
      tokens: 5_010,
    });
    expect((await key.admitWith({ tpm: 100 }, { promptTokens: 1, maxTokens: 1 })).verdict).toBe('tpm');
  });

  it('leave room after Retry-After, and none before', async () => {
    const key = await lab.key();
    const limits = { tpm: 100 };
    await key.admitWith(limits, { promptTokens: 60 });
    await key.pass(20_000);
    await key.admitWith(limits, { promptTokens: 10 });

    const { verdict, retryAfterMs } = await key.admitWith(limits, { promptTokens: 30 });

    expect(verdict).toBe('tpm');
    expect(retryAfterMs).toBeGreaterThan(40_000 - SLACK_MS);
    expect(retryAfterMs).toBeLessThanOrEqual(GONE_MS - 20_000);
    const retryAfterSeconds = Math.ceil(retryAfterMs / 1_000);
    await key.pass(retryAfterSeconds * 1_000 - SLACK_MS);
    expect((await key.admitWith(limits, { promptTokens: 30 })).verdict).toBe('tpm');
    await key.pass(SLACK_MS);
    expect((await key.admitWith(limits, { promptTokens: 30 })).verdict).toBe('admitted');
  });

  it('leave room as soon where nothing has been admitted for a while', async () => {
    const key = await lab.key({ ceilings: { rpm: null, tpm: 100, inFlight: null } });
    await key.admit({ promptTokens: 80 });
    await key.pass(50_000);

    const ofTenant = await key.admit({ promptTokens: 80 });
    const ofKey = await key.admitWith({ tpm: 50 }, { promptTokens: 1 });

    expect([ofTenant.verdict, ofKey.verdict]).toEqual(['tenant_tpm', 'tpm']);
    for (const { retryAfterMs } of [ofTenant, ofKey]) expect(retryAfterMs).toBeLessThanOrEqual(GONE_MS - 50_000);
  });

  it('make a request that is larger than the limit wait until none is left, and no longer', async () => {
    const key = await lab.key();
    const limits = { tpm: 100 };
    await key.admitWith(limits);
    await key.pass(30_000);
    const voided = 'req_voided';
    await key.admitWith(limits, { requestId: voided });
    await lab.store.void(voided, key.principal);

    const { retryAfterMs } = await key.admitWith(limits, { promptTokens: 500 });

    expect(retryAfterMs).toBeLessThanOrEqual(GONE_MS - 30_000);
    await key.pass(Math.ceil(retryAfterMs / 1_000) * 1_000);
    expect((await key.admitWith(limits, { promptTokens: 500 })).verdict).toBe('admitted');
  });

  it('are all gone, and with them the time until the window is empty, once every request was taken back', async () => {
    const key = await lab.key();
    await key.admit({ requestId: 'req_first' });
    await key.pass(20_000);
    await key.admit({ requestId: 'req_second' });
    const look = () => lab.store.count('req_look', key.principal, false);

    await lab.store.void('req_second', key.principal);
    const { tokens, tokensResetMs } = await look();
    expect(tokens).toBe(20);
    expect(tokensResetMs).toBeLessThanOrEqual(GONE_MS - 20_000);

    await lab.redis.hincrby(lab.keys.record('req_first'), 'acceptedAt', -20_000);
    await lab.store.void('req_first', key.principal);
    expect(await look()).toMatchObject({ tokens: 0, tokensResetMs: 0 });
  });

  it('are right again when a request without any has left the window', async () => {
    const key = await lab.key();
    await key.admit({ requestId: 'req_nothing' });
    await lab.store.void('req_nothing', key.principal);
    await key.admit();
    await key.pass(GONE_MS);

    expect(await key.admit()).toMatchObject({ verdict: 'admitted', tokens: 20 });
  });

  it('are never less than none, whatever is given back that was not counted here', async () => {
    const key = await lab.key();
    for (const requestId of ['req_early_1', 'req_early_2']) await key.admit({ requestId });
    await lab.redis.del(lab.keys.tokenWindow(key.principal.keyId));
    await key.admit();

    for (const requestId of ['req_early_1', 'req_early_2']) await lab.store.void(requestId, key.principal);

    expect((await lab.store.count('req_look', key.principal, false)).tokens).toBeGreaterThanOrEqual(0);
  });

  it('are corrected in the second of their request, whichever is the newest one', async () => {
    const key = await lab.key();
    const use = lab.keys.tokenWindow(key.principal.keyId);
    const requestId = 'req_corrected_later';
    await key.admit({ requestId });
    await moveUse(lab.redis, use, 5);
    await lab.redis.hincrby(lab.keys.record(requestId), 'acceptedAt', -5_000);
    await key.admit();

    await lab.store.void(requestId, key.principal);

    expect(await usedOf(lab.redis, use)).toMatchObject({ tokens: 20 });
    await key.pass(2_000);
    expect(await key.admit()).toMatchObject({ tokens: 40 });
    expect((await usedOf(lab.redis, use)).tokens).toBe(40);
  });

  it('leave the window in thousands as well as one by one', async () => {
    const key = await lab.key();
    // Each has a second and a half from when it is sent.
    for (let turn = 0; turn < 12; turn += 1) await Promise.all(Array.from({ length: 100 }, () => key.admit()));
    expect((await key.admit()).tokens).toBe(1_201 * 20);

    const refused = await key.admitWith({ tpm: 1_201 * 20 });
    expect(refused.verdict).toBe('tpm');
    await key.pass(GONE_MS);
    expect(await key.admit()).toMatchObject({ verdict: 'admitted', tokens: 20, requests: 1 });
  });
});

describe('the daily allowance of test keys', () => {
  const test = { mode: 'test', testDailyTokens: 50 } as const;

  it('is shared by the keys of a tenant and ends at midnight UTC', async () => {
    const key = await lab.key(test, 0);
    const sister = await lab.key({ ...test, tenantId: key.principal.tenantId }, 0);

    expect((await key.admit()).verdict).toBe('admitted');
    expect((await sister.admit()).verdict).toBe('admitted');
    // What they do not take comes back.
    const early = await key.admit();
    expect([early.verdict, early.retryAfterMs]).toEqual(['test_tokens_in_flight', 1_000]);

    await lab.redis.del(lab.keys.open(key.principal.tenantId));
    const refused = await key.admit();

    // They took all that they held: ten tokens are left, as many as the prompt has.
    expect(refused.verdict).toBe('test_tokens');
    expect(refused.retryAfterMs).toBe(86_400_000 - (refused.now % 86_400_000));
  });

  it('the daily allowance of test keys is another one on another day', async () => {
    const key = await lab.key(test, 0);
    const yesterday = lab.keys.testAllowance(key.principal.tenantId, dayOf(Date.now() - 86_400_000));
    await lab.redis.set(yesterday, '1000');

    expect((await key.admit()).verdict).toBe('admitted');
  });

  it('is all that a test key takes: no hold, no budget, and no balance is asked for', async () => {
    const key = await lab.key({ ...test, monthlyTokenBudget: 1 }, 0);

    expect((await key.admit()).verdict).toBe('admitted');

    expect(await key.figures()).toMatchObject({ heldMicro: 0, budgetHeldTokens: 0, pendingMicro: 0 });
  });

  it('the daily allowance of test keys gets back what a voided request took', async () => {
    const key = await lab.key(test, 0);
    for (const requestId of ['req_a', 'req_b']) await key.admit({ requestId });
    expect((await key.admit()).verdict).toBe('test_tokens_in_flight');

    await lab.store.void('req_b', key.principal);

    expect((await key.admit()).verdict).toBe('admitted');
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

  it('the daily allowance of test keys does not lower the rpm of live keys', async () => {
    const live = await lab.key();
    const sister = await lab.key({ ...test, tenantId: live.principal.tenantId }, 0);
    await live.publish({ balanceMicro: 1e9 });
    await fill(() => sister.admit());

    expect((await live.admit()).verdict).toBe('admitted');
  });
});
