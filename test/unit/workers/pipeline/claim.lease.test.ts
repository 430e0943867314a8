import { describe, expect, it, jest } from '@jest/globals';

import { wordsOf } from '../../../../shared/contracts/events.ts';
import type { Hold, HoldRequest, Renewal } from '../../../../shared/requests/delivery.ts';
import { createLease } from '../../../../workers/pipeline/claim.ts';
import { openReleaseGate } from '../../../../workers/pipeline/spending.ts';
import { Stopped } from '../../../../workers/pipeline/stage.ts';
import { idleDelivery } from '../../../support/idle-run.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

const MAX_TOKENS = 4_096;

/** A lease at rate 1 that holds 50 of each bound, of a tenant who has `all` in all. */
function leaseOf({ micro = Infinity, tokens = Infinity }: Partial<Hold>) {
  const all = { micro, tokens };
  const asked: HoldRequest[] = [];
  let held = { micro: Math.min(50, micro), tokens: Math.min(50, tokens) };
  const renew = (needed: HoldRequest): Promise<Renewal> => {
    asked.push(needed);
    const grant = (bound: keyof Hold) => Math.min(all[bound], Math.max(held[bound], needed.preferred[bound]));
    held = { micro: grant('micro'), tokens: grant('tokens') };
    return Promise.resolve({ outcome: 'ok', held });
  };
  const lease = createLease(createRecordingLog(), {
    delivery: idleDelivery({ renew }),
    rates: { promptMicro: 1, completionMicro: 1 },
    maxTokens: MAX_TOKENS,
    remainingMs: 60_000,
    held,
  });
  const out: string[] = [];
  const gate = openReleaseGate(lease, (text) => out.push(wordsOf(text)));
  /** The answer grows by pieces of two tokens each. */
  const grow = async (tokens: number) => {
    for (let count = 0; count < tokens && !lease.signal.aborted; count += 2) {
      gate.push('a piece.');
      await Promise.resolve();
    }
    const end = gate.end();
    await end.catch(() => undefined);
    lease.release();
    return out.join('').length / 4;
  };
  return { lease, asked, gate, out, grow };
}

describe('a lease', () => {
  it('is renewed once at a time, however long Redis takes', () => {
    jest.useFakeTimers();
    let asked = 0;
    const renew = () => {
      asked += 1;
      return new Promise<Renewal>(() => undefined);
    };
    const held = { micro: 50, tokens: 50 };
    const rates = { promptMicro: 1, completionMicro: 1 };
    const options = { delivery: idleDelivery({ renew }), rates, maxTokens: MAX_TOKENS, remainingMs: 600_000, held };
    const lease = createLease(createRecordingLog(), options);

    jest.advanceTimersByTime(60_000);
    lease.release();
    jest.useRealTimers();

    expect(asked).toBe(1);
  });

  it('asks for few grants, since each doubles what is used, and lets the whole answer out', async () => {
    const { lease, asked, grow } = leaseOf({ micro: 1e9 });
    expect(await lease.cover(10, false)).toBe(false);

    expect(await grow(4_000)).toBe(4_000);

    expect(asked.length).toBeLessThan(8);
    expect(lease.signal.aborted).toBe(false);
  });

  it('asks for none where the longest answer is held', async () => {
    const { lease, asked, grow } = leaseOf({});
    await lease.cover(10, true);
    asked.length = 0;
    expect(await lease.cover(10, false)).toBe(true);

    expect(await grow(4_000)).toBe(4_000);
    expect(asked).toEqual([]);
  });

  it.each([
    ['credits', { micro: 500 }],
    ['budget', { micro: 1e9, tokens: 500 }],
    ['allowance', { tokens: 500 }],
  ] as const)('a lease lets out no token beyond the %s', async (bound, all) => {
    const { lease, grow } = leaseOf(all);
    await lease.cover(10, true);

    expect(await grow(4_000)).toBe(490);

    expect(lease.signal.reason).toEqual(new Stopped('exhausted', bound));
  });

  it('lets out the part of a piece that the grant has room for, in whole characters', async () => {
    const { lease, gate, out } = leaseOf({ micro: 20 });
    await lease.cover(10, false);

    gate.push('é'.repeat(100));
    await expect(gate.end()).rejects.toMatchObject({ reason: 'exhausted' });

    expect(out).toEqual(['é'.repeat(20)]);
    lease.release();
  });

  it('calls no provider for a prompt that is not covered', async () => {
    const { lease } = leaseOf({ micro: 1_000 });

    await expect(lease.cover(1_000, true)).rejects.toMatchObject({ reason: 'exhausted', bound: 'credits' });
    lease.release();
  });

  it('asks of a bound no more than prompt and longest answer', async () => {
    const { lease, asked } = leaseOf({ micro: 1e9 });
    await lease.cover(10, true);
    await lease.grant(1e9);

    expect(Math.max(...asked.map(({ preferred }) => preferred.tokens))).toBe(10 + MAX_TOKENS);
    lease.release();
  });
});
