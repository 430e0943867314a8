import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { LANE_LIMIT, fill, openAdmissionLab } from '../../support/admission-lab.ts';
import type { AdmissionLab, LabKey } from '../../support/admission-lab.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';

const NONE = { rpm: null, tpm: null, inFlight: null };
const BODY = '{}';

let lab: AdmissionLab;
beforeAll(async () => {
  lab = await openAdmissionLab();
});
beforeEach(async () => {
  await lab.redis.del(lab.keys.prioritized('interactive'));
});
afterAll(async () => {
  await lab.close();
});

/** So many keys of one tenant. */
async function keysOfTenant(count: number, more: Parameters<AdmissionLab['key']>[0], balance?: number) {
  const tenantId = newId('ten');
  const keys: LabKey[] = [];
  for (let index = 0; index < count; index += 1) keys.push(await lab.key({ ...more, tenantId }, balance));
  return keys;
}

/** Each call takes the next key. */
function inTurn(keys: readonly LabKey[]): LabKey {
  const last = keys.at(-1);
  if (last === undefined) throw new Error('There are no keys');
  let calls = 0;
  return { ...last, admit: (...asked) => (keys[calls++ % keys.length] ?? last).admit(...asked) };
}

describe('a ceiling of a tenant', () => {
  it.each([
    ['tenant_rpm', { ...NONE, rpm: 5 }, 5],
    // Twenty tokens each.
    ['tenant_tpm', { ...NONE, tpm: 70 }, 3],
    ['max_in_flight', { ...NONE, inFlight: 4 }, 4],
  ] as const)('%s holds for many keys together, and a refusal takes nothing', async (verdict, ceilings, admitted) => {
    const tenant = inTurn(await keysOfTenant(20, { ceilings }));

    expect(await fill(() => tenant.admit())).toMatchObject({ admitted, refused: { verdict } });

    const before = await lab.snapshot();
    expect(await tenant.admit()).toMatchObject({ verdict });
    expect(await lab.snapshot()).toEqual(before);
  });

  it.each([
    ['tenant_rpm', { ...NONE, rpm: 1 }],
    ['tenant_tpm', { ...NONE, tpm: 25 }],
  ] as const)('%s says when the same call is admitted', async (verdict, ceilings) => {
    const key = await lab.key({ ceilings });
    await key.admit();

    const refused = await key.admit();

    expect(refused.verdict).toBe(verdict);
    // The second in which the first one came has to leave the minute whole.
    expect(refused.retryAfterMs).toBeGreaterThan(60_000 - 1_000);
    expect(refused.retryAfterMs).toBeLessThanOrEqual(61_000);
    await key.pass(Math.ceil(refused.retryAfterMs / 1000) * 1000);
    expect((await key.admit()).verdict).toBe('admitted');
  });

  it('lets no true minute have more than it says', async () => {
    const key = await lab.key({ ceilings: { ...NONE, rpm: 4 } });
    const sent: number[] = [];
    let passed = 0;
    for (let step = 0; step < 60; step += 1) {
      const { verdict, now } = await key.admit();
      if (verdict === 'admitted') sent.push(now + passed);
      await key.pass(7_000);
      passed += 7_000;
    }
    expect(sent.length).toBeGreaterThan(20);
    for (const from of sent)
      expect(sent.filter((at) => at >= from && at < from + 60_000).length).toBeLessThanOrEqual(4);
  });

  it('of requests a minute takes nothing of a batch’s lines, one of tokens lets them take four fifths', async () => {
    const key = await lab.key({ ceilings: { rpm: 1, tpm: 100, inFlight: 1 } });
    const line = { queue: 'batch', endpoint: 'batch' } as const;
    expect(await fill(() => key.admit(line))).toMatchObject({ admitted: 4, refused: { verdict: 'tenant_tpm' } });
    expect((await key.admit()).verdict).toBe('admitted');
    expect((await key.admit()).verdict).toBe('tenant_rpm');
  });

  it('of requests in flight is free again when one is taken back', async () => {
    const key = await lab.key({ ceilings: { ...NONE, inFlight: 1 } });
    await key.admit({ requestId: 'req_only' });
    expect((await key.admit()).verdict).toBe('max_in_flight');
    await lab.store.void('req_only', key.principal);
    expect((await key.admit()).verdict).toBe('admitted');
  });

  it('of requests in flight does not count one whose record is gone', async () => {
    const key = await lab.key({ ceilings: { ...NONE, inFlight: 1 } });
    await key.admit({ requestId: 'req_gone' });
    await lab.redis.del(lab.keys.record('req_gone'));
    expect((await key.admit()).verdict).toBe('admitted');
  });

  it('is not looked at where there is none', async () => {
    const key = await lab.key({ ceilings: NONE });
    for (let index = 0; index < 9; index += 1) expect((await key.admit()).verdict).toBe('admitted');
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

describe('the allowance of test keys', () => {
  it('is a bound, not a hint, for a hundred keys at once', async () => {
    const allowance = 1_000;
    const keys = await keysOfTenant(100, { mode: 'test', testDailyTokens: allowance }, 0);

    const answers = await Promise.all(keys.flatMap((key) => [1, 2, 3].map(() => key.admit())));

    const admitted = answers.filter(({ verdict }) => verdict === 'admitted');
    expect(admitted.reduce((sum, { estimateTokens }) => sum + estimateTokens, 0)).toBe(allowance);
    expect(new Set(answers.map(({ verdict }) => verdict))).toEqual(new Set(['admitted', 'test_tokens_in_flight']));
  });

  it('does not let tiny requests take all places: they are in flight like others', async () => {
    const keys = await keysOfTenant(100, { mode: 'test', ceilings: { ...NONE, inFlight: 50 } }, 0);

    const answers = await Promise.all(keys.map((key) => key.admit({ promptTokens: 1, maxTokens: 1 })));

    expect(answers.filter(({ verdict }) => verdict === 'admitted')).toHaveLength(50);
  });
});
