import { expect, it } from '@jest/globals';

import { dayOf } from '../../../shared/domain/pricing.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import { LEASE_MS, needs, openRequestLab, RATE, RETENTION_MS, SHARD } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const lab = useStarted('lab', openRequestLab);

/** Admission holds 10 + 90 tokens. */
async function running(balanceCredits = 1_000): Promise<LabRequest> {
  const request = await lab.admit({ principal: await lab.tenant(balanceCredits * RATE), maxTokens: 90 });
  await lab.run(request, 1);
  return request;
}

/** `ahead`: tokens that are asked ahead of need. */
async function renew(request: LabRequest, tokens: number, ahead = tokens): Promise<string> {
  const renewal = await lab.requests.renew(
    request.ref(1),
    needs(tokens, { preferred: { micro: ahead * RATE, tokens: ahead } }),
  );
  return renewal.outcome;
}
const holdOf = ({ requestId }: LabRequest) => lab.redis.hget(lab.keys.record(requestId), 'hold').then(Number);

it('puts off the end of the lease', async () => {
  const request = await running();
  await lab.redis.zadd(lab.keys.inflight, 1, request.requestId);

  await renew(request, 100);

  const [seconds] = await lab.redis.time();
  const end = Number(await lab.redis.zscore(lab.keys.inflight, request.requestId));
  expect(end / 1000 - Number(seconds)).toBeGreaterThan(LEASE_MS / 1000 - 2);
});

it('lets a request that nobody else is beside overrun a bound once, by so much and no more', async () => {
  const request = await running(50);
  const overdraft = { micro: 20 * RATE, tokens: 20 };

  for (const tokens of [60, 90, 120]) await lab.requests.renew(request.ref(1), needs(tokens, { overdraft }));

  expect(await holdOf(request)).toBe(70 * RATE);
});

it('grants nothing beyond the balance to a request beside others', async () => {
  const request = await running(250);
  const other = await lab.admit({ principal: request.principal, maxTokens: 90 });

  expect(other.admission.verdict).toBe('admitted');
  await lab.requests.renew(request.ref(1), needs(200, { overdraft: { micro: 20 * RATE, tokens: 20 } }));

  expect(await lab.figures(request.principal)).toMatchObject({ heldMicro: 250 * RATE });
  expect(await holdOf(request)).toBe(150 * RATE);
});

it('grants no more tokens than the monthly budget has left', async () => {
  const principal = await lab.tenant(1_000 * RATE, { monthlyTokenBudget: 130 });
  const request = await lab.admit({ principal, maxTokens: 90 });
  await lab.run(request, 1);

  const renewal = await lab.requests.renew(request.ref(1), needs(200));

  expect(renewal).toEqual({ outcome: 'ok', held: { micro: 200 * RATE, tokens: 130 } });
  expect(await lab.figures(principal)).toMatchObject({ budgetHeldTokens: 130 });
});

it('takes the tokens of a test key from its allowance, as far as it goes, and nothing from the credits', async () => {
  const principal = await lab.tenant(0, { mode: 'test', testDailyTokens: 4_000 });
  const request = await lab.admit({ principal, maxTokens: 90 });
  await lab.run(request, 1);

  const renewal = await lab.requests.renew(request.ref(1), needs(5_000));

  expect(renewal).toEqual({ outcome: 'ok', held: { micro: Infinity, tokens: 4_000 } });
  const allowance = lab.keys.testAllowance(principal.tenantId, dayOf(request.admission.now));
  expect(await lab.redis.get(allowance)).toBe('4000');
  expect(await lab.figures(principal)).toMatchObject({ heldMicro: 0, budgetHeldTokens: 0 });
});

it.each([
  ['cancels a request whose last reader left since Redis is back', 'cancelled', { left: -6_000 }],
  ['waits for the readers of a request that was left before: one may have returned since', 'ok', { left: -12_000 }],
  ['waits for a reader whose lease ran out: it could not renew', 'ok', { left: -6_000, another: -6_000 }],
])('%s', async (_, outcome, ages) => {
  const request = await running();
  const record = lab.keys.record(request.requestId);
  const [reader = ''] = (await lab.redis.hkeys(record)).filter((field) => field.startsWith('reader:'));
  await createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS }).detach(
    SHARD,
    request.requestId,
    reader.slice('reader:'.length),
  );
  for (const [name, ageMs] of Object.entries(ages))
    await lab.redis.hset(record, name === 'left' ? name : `reader:${name}`, Date.now() + ageMs);
  const backMs = 10_000;
  const requests = createRequestStore(lab.redis, lab.keyspace, {
    ...{ leaseMs: LEASE_MS, disconnectGraceMs: 5_000 },
    hasReconnectedRecently: (_shard, withinMs) => backMs < withinMs,
  });

  expect(await requests.renew(request.ref(1), needs(100))).toMatchObject({ outcome });
});
