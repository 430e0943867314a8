import { describe, expect, it } from '@jest/globals';

import { dayOf } from '../../../shared/domain/pricing.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { openAdmissionLab, RATE } from '../../support/admission-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const lab = useStarted('lab', openAdmissionLab);

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
});
