import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import type { RequestStore } from '../../../shared/requests/delivery-store.ts';
import { openAdmissionLab } from '../../support/admission-lab.ts';
import type { LabKey } from '../../support/admission-lab.ts';
import { useStarted } from '../../support/use-service.ts';

/** Of the lab's keys. */
const SHARD = 2;
/** Requests that workers run at once. */
const PLACES = 20;
/** Requests that each tenant keeps in line. */
const BACKLOG = 60;
/** Ten of the prompt, and ten of completion at most. */
const ESTIMATE = 20;
/** Limits that are out of the way. */
const MANY = { rpm: 10_000, dailyRequests: 0, chatRpm: 10_000, streamRpm: 10_000 };
/** What every request counts beside its tokens, see fair-queue.lua. */
const BASE_COST = 100;

let requests: RequestStore;
/** Ids are each test's own. */
let run = 0;
const lab = useStarted('lab', () => openAdmissionLab({ queueLimit: 10_000 }));
beforeAll(() => {
  requests = createRequestStore(lab.redis, lab.keyspace, { leaseMs: 10_000, disconnectGraceMs: 30_000 });
});
beforeEach(async () => {
  run += 1;
  await lab.redis.del(lab.keys.prioritized('interactive'));
});

/** Ends a request that has taken so many tokens. */
async function end({ principal }: LabKey, requestId: string, tokens: number): Promise<void> {
  const { shard, tenantId, keyId } = principal;
  const ended = await requests.finish({ shard, requestId, tenantId, keyId, queue: 'interactive', fence: 1 }, 0, {
    status: 'cancelled',
    deltas: [],
    terminal: { finishReason: 'cancelled', usage: { promptTokens: tokens, completionTokens: 0 } },
    costMicro: 0,
    retentionMs: 1_000,
    // Kept in the key's window, as what is charged is.
    unbilledTokens: tokens,
  });
  if (!ended) throw new Error(`${requestId} had ended before`);
}

/** A worker that takes the next of the line, as BullMQ does. */
async function take(keys: readonly LabKey[]): Promise<{ who: number; number: number; requestId: string }> {
  const [requestId = ''] = await lab.redis.zpopmin(lab.keys.prioritized('interactive'));
  const [, who, number] = requestId.split('-').map(Number);
  if (who === undefined || number === undefined) throw new Error('Nobody waits');
  const tenantId = keys[who]?.principal.tenantId ?? '';
  await requests.claim({ shard: SHARD, requestId, tenantId, fence: 1 });
  return { who, number, requestId };
}

const admit = (keys: readonly LabKey[], who: number, number: number) =>
  keys[who]?.admit({ requestId: `${run}-${who}-${number}`, body: '{"requestId":"r"}' });

/**
 * Tenants that always have more in line than workers can take. Returns whose requests were taken, in order, once the line
 * is full; each takes `tokensOf` in the end.
 */
async function serve(keys: readonly LabKey[], count: number, tokensOf: (taken: number) => number): Promise<number[]> {
  const sent = keys.map(() => 0);
  const waiting = keys.map(() => 0);
  const running: Awaited<ReturnType<typeof take>>[] = [];
  const order: number[] = [];
  while (order.length < count) {
    for (const who of keys.keys())
      for (; (waiting[who] ?? 0) < BACKLOG; sent[who] = (sent[who] ?? 0) + 1) {
        await admit(keys, who, sent[who] ?? 0);
        waiting[who] = (waiting[who] ?? 0) + 1;
      }
    const oldest = running.length < PLACES ? undefined : running.shift();
    const key = oldest && keys[oldest.who];
    if (oldest !== undefined && key !== undefined) await end(key, oldest.requestId, tokensOf(oldest.who));
    const taken = await take(keys);
    running.push(taken);
    waiting[taken.who] = (waiting[taken.who] ?? 0) - 1;
    order.push(taken.who);
  }
  return order;
}

/** How much more work of the second was taken than of the first. */
function ratioOf(order: readonly number[], tokensOf: (who: number) => number): number {
  const work = (who: number) => order.filter((one) => one === who).length * (BASE_COST + tokensOf(who));
  return work(1) / work(0);
}

describe('weights of 1 and 3', () => {
  it.each([
    ['as long as estimated', () => ESTIMATE],
    ['six times as long', () => 6 * ESTIMATE],
    ['shorter than estimated', () => 1],
    ['longer for one tenant than for the other', (who: number) => (who === 0 ? 1 : 10) * ESTIMATE],
  ] as const)('share the workers where requests are %s, long before the line has been served', async (_, tokensOf) => {
    const keys = [await lab.key({ weight: 1 }), await lab.key({ weight: 3 })];
    // What was taken before anything had ended knew no better.
    const order = (await serve(keys, 3 * PLACES + 200, tokensOf)).slice(3 * PLACES);

    expect(Math.abs(ratioOf(order, tokensOf) / 3 - 1)).toBeLessThan(0.02);
  });
});

describe('what a request has taken in the end', () => {
  it.each([
    ['more', 40 * ESTIMATE],
    ['less', 0],
  ])('moves what waits, %s than estimated, and none passes an earlier one', async (_, tokens) => {
    const keys = [await lab.key()];
    for (let number = 0; number < 40; number += 1) await admit(keys, 0, number);
    const numbers: number[] = [];
    for (let ended = 0; ended < 40; ended += 1) {
      const { number, requestId } = await take(keys);
      numbers.push(number);
      const [key] = keys;
      if (key !== undefined) await end(key, requestId, number % 3 === 0 ? tokens : ESTIMATE);
      await admit(keys, 0, 40 + number);
    }
    expect(numbers).toEqual(Array.from({ length: 40 }, (_each, index) => index));
  });
});

describe('the tokens of a tenant’s minute', () => {
  it('have those beyond its estimate of a request that ran for longer than one', async () => {
    const key = await lab.key({ ceilings: { rpm: null, tpm: 1_000, inFlight: null } });
    await admit([key], 0, 0);
    const { requestId } = await take([key]);
    await key.pass(90_000);
    await lab.redis.hincrby(lab.keys.record(requestId), 'acceptedAt', -90_000);

    await end(key, requestId, 5_000);

    expect((await key.admit()).verdict).toBe('tenant_tpm');
    await key.pass(62_000);
    expect((await key.admit()).verdict).toBe('admitted');
  });
});

describe('positions', () => {
  it('are right when more tokens were sent at once than a turn at an empty line runs ahead', async () => {
    const keys = [await lab.key({ limits: { ...MANY, tpm: 1e15 } }, 1e15)];
    const [key] = keys;
    const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: 1_000 });
    // A thousand seconds ahead of the clock, all taken at once.
    for (let number = 0; number < 6; number += 1)
      await key?.admit({ requestId: `${run}-0-${number}`, body: '{}', promptTokens: 1e9 });
    for (let number = 0; number < 6; number += 1) await take(keys);

    for (let number = 6; number < 9; number += 1) await admit(keys, 0, number);

    const positions: unknown[] = [];
    for (let number = 6; number < 9; number += 1)
      positions.push(key && (await records.place(key.principal, `${run}-0-${number}`))?.position);
    expect(positions).toEqual([1, 2, 3]);
  });
});
