import { describe, expect, it } from '@jest/globals';

import type { Principal } from '../../../shared/domain/principal.ts';
import type { DeliveryRef } from '../../../shared/requests/delivery.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import { IDEMPOTENCY, useRestoreLab } from '../../support/restore-lab.ts';
import { endingOf, LEASE_MS, needs, RATE } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';

const { puts, lab } = useRestoreLab();

describe('while it runs', () => {
  const END = { prompt: 10, completion: 5 };
  /** Each tells Redis of the request that it has lost, with "Well, " sent before. */
  const WRITES = {
    append: (ref: DeliveryRef) => lab.requests.append(ref, 2, ['yes.'], { earlier: ['Well, '] }),
    renew: async (ref: DeliveryRef) => (await lab.requests.renew(ref, needs(20))).outcome,
    finish: async (ref: DeliveryRef, request: LabRequest) =>
      (await lab.requests.finish(ref, 1, endingOf(request, 'yes.', END), ['Well, '])) ? 'ok' : 'no',
  };

  async function lost(age = 0) {
    const principal = await lab.tenant(100 * RATE);
    const { request, ref } = await puts.running(principal, age);
    await lab.requests.append(ref, 1, ['Well, ']);
    await puts.rollBack();
    return { principal, request, ref: { ...ref, envelope: request.envelope } };
  }

  it.each(Object.keys(WRITES) as (keyof typeof WRITES)[])('it goes on, told by %s', async (how) => {
    const { principal, request, ref } = await lost();

    expect(await WRITES[how](ref, request)).toBe('ok');

    if (how !== 'finish') {
      const leasedUntil = Number(await lab.redis.zscore(lab.keys.inflight, request.requestId));
      expect(leasedUntil).toBeGreaterThan(request.admission.now + LEASE_MS - 1_000);
      expect(await WRITES.renew(ref)).toBe('ok');
      expect(await lab.figures(principal)).toMatchObject({ heldMicro: 20 * RATE });
      expect(await lab.redis.zrange(lab.keys.open(principal.tenantId), '0', '-1')).toEqual([request.requestId]);
      expect(await WRITES.finish(ref, request)).toBe('ok');
    }
    expect(await puts.textOf(request)).toBe('Well, yes.');
  });

  it('it goes on where several calls find it missing at once', async () => {
    const { request, ref } = await lost();

    expect(await Promise.all([WRITES.renew(ref), WRITES.append(ref)])).toEqual(['ok', 'ok']);

    expect(await WRITES.finish(ref, request)).toBe('ok');
    expect(await puts.textOf(request)).toBe('Well, yes.');
  });

  it('it is bounded by what its tenant may use', async () => {
    const principal = await lab.tenant(100 * RATE, { monthlyTokenBudget: 25 });
    const { ref, request } = await puts.running(principal);
    await puts.rollBack();
    const lease = { ...ref, envelope: request.envelope };

    expect((await lab.requests.renew(lease, needs(20))).outcome).toBe('ok');
    expect(await lab.requests.renew(lease, needs(40))).toMatchObject({ held: { tokens: 25 } });
  });

  describe('and Redis lacks the book of its tenant', () => {
    /** `balance`: credits for so many tokens. */
    async function bookless(balance: number, loadBalance?: (shard: number, tenantId: string) => Promise<void>) {
      const principal = await lab.tenant(balance * RATE);
      const { request, ref } = await puts.running(principal);
      await puts.clear();
      const settings = { leaseMs: LEASE_MS, disconnectGraceMs: 30_000, ...(loadBalance && { loadBalance }) };
      const { renew } = createRequestStore(lab.redis, lab.keyspace, settings);
      const preferred = { micro: 5_000 * RATE, tokens: 5_000 };
      const ask = (tokens: number) => renew({ ...ref, envelope: request.envelope }, needs(tokens, { preferred }));
      return { principal, request, ask };
    }

    it('it is granted what it needs and nothing ahead, as nobody knows what is left', async () => {
      const { request, ask } = await bookless(1_000);

      expect(await ask(200)).toMatchObject({ outcome: 'ok', held: { micro: 200 * RATE } });
      expect(await ask(400)).toMatchObject({ outcome: 'ok', held: { micro: 400 * RATE } });

      // Nor does whoever takes it over hold its longest answer at once.
      expect(await lab.run(request, 2)).toMatchObject({ held: { micro: 400 * RATE } });
    });

    it('it is bounded by the book again before it is granted anything', async () => {
      const publish = (shard: number, tenantId: string) =>
        lab.accounts.publishBalance(shard, tenantId, { version: 1, balanceMicro: 130 * RATE, tokensByMonth: {} });
      const { principal, ask } = await bookless(130, publish);

      expect(await ask(200)).toMatchObject({ outcome: 'ok', held: { micro: 130 * RATE } });

      expect(await lab.figures(principal)).toMatchObject({ ledgerMicro: 130 * RATE, heldMicro: 130 * RATE });
    });
  });

  it('another worker can take it over', async () => {
    const { request, ref } = await lost();
    await WRITES.renew(ref);

    expect(await lab.run(request, 2)).toMatchObject({ envelope: request.envelope, sent: 0 });
    expect(await WRITES.append(ref)).toBe('superseded');
  });

  it('it stays away where it was accepted too long ago to be lost, or has been erased', async () => {
    const old = await lost(11_000);
    expect(await WRITES.append(old.ref)).toBe('superseded');
    expect(await WRITES.finish(old.ref, old.request)).toBe('no');

    const erased = await lost();
    await lab.redis.hset(lab.keys.record(erased.request.requestId), 'state', 'void');
    expect(await WRITES.append(erased.ref)).toBe('superseded');
    expect(await lab.redis.exists(lab.keys.body(erased.request.requestId))).toBe(0);
  });

  it('it goes on where Redis was away for longer than it could have been lost', async () => {
    const { ref } = await lost(14_000);
    const settings = { leaseMs: LEASE_MS, disconnectGraceMs: 30_000 };
    const requests = createRequestStore(lab.redis, lab.keyspace, { ...settings, lastAwayMs: () => 5_000 });

    expect(await requests.append(ref, 2, ['yes.'], { earlier: ['Well, '] })).toBe('ok');
  });

  it('it stays away where its caller has sent it again, under the same key', async () => {
    const { ref } = await lost();
    await lab.redis.set(lab.keys.idempotency(IDEMPOTENCY.name), 'another');

    expect(await WRITES.append(ref)).toBe('superseded');
  });
});

const MANY = { rpm: 10_000, tpm: 10_000_000, dailyRequests: 0, chatRpm: 10_000, streamRpm: 10_000 };
/** Each lets two requests of a minute in, by the verdict that refuses the third. */
const LIMITS: Record<string, Partial<Principal>> = {
  rpm: { limits: { ...MANY, rpm: 2 } },
  throttle: { limits: { ...MANY, streamRpm: 2 } },
  tenant_rpm: { ceilings: { rpm: 2, tpm: null, inFlight: null } },
};
const IN_FLIGHT: Partial<Principal> = { ceilings: { rpm: null, tpm: null, inFlight: 2 } };

/** Admits the tenant's next request, and tells its fate. */
const next = async (principal: Principal) => (await lab.admit({ principal })).admission.verdict;

describe('a request that Redis has lost, and that was put back, counts in limits on requests', () => {
  async function putBackRunning(more: Partial<Principal>): Promise<Principal> {
    const principal = await lab.tenant(undefined, more);
    await lab.admit({ principal });
    const { request, ref } = await puts.running(principal);
    await puts.rollBack();
    expect((await lab.requests.renew({ ...ref, envelope: request.envelope }, needs(20))).outcome).toBe('ok');
    return principal;
  }

  it.each(Object.entries({ ...LIMITS, max_in_flight: IN_FLIGHT }))('while it runs: %s', async (verdict, more) => {
    expect(await next(await putBackRunning(more))).toBe(verdict);
  });

  it.each([...Object.entries(LIMITS), ['admitted', IN_FLIGHT] as const])(
    'once it has ended: %s',
    async (verdict, more) => {
      const principal = await lab.tenant(undefined, more);
      await lab.admit({ principal });
      const { repeat } = await puts.ended(principal);
      await puts.rollBack();
      expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

      expect(await next(principal)).toBe(verdict);
    },
  );

  it.each(Object.entries(LIMITS))('a minute after its acceptance not any more: %s', async (_verdict, more) => {
    const principal = await lab.tenant(undefined, more);
    await lab.admit({ principal });
    const { request, ref } = await puts.running(principal, 61_000);
    await puts.rollBack();
    const ending = endingOf(request, 'Hello', { prompt: 10, completion: 5 });
    expect(await lab.requests.replayFinish(ref, 0, ending)).toBe('replayed');

    expect(await next(principal)).toBe('admitted');
  });
});
