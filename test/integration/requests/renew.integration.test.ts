import { expect, it } from '@jest/globals';

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
const holdOf = ({ requestId }: LabRequest) => lab.redis.hget(lab.keys.record(requestId), 'hold').then(Number);

it('lets a request that nobody else is beside overrun a bound once, by so much and no more', async () => {
  const request = await running(50);
  const overdraft = { micro: 20 * RATE, tokens: 20 };

  for (const tokens of [60, 90, 120]) await lab.requests.renew(request.ref(1), needs(tokens, { overdraft }));

  expect(await holdOf(request)).toBe(70 * RATE);
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
