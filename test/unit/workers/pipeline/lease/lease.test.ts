import { describe, expect, it } from '@jest/globals';

import type { Needed } from '../../../../../shared/infra/redis/requests/request-store.ts';
import { createLease } from '../../../../../workers/pipeline/lease/lease.ts';
import { Stopped } from '../../../../../workers/pipeline/stage.ts';
import { createRecordingLog } from '../../../../support/recording-log.ts';

const REF = { shard: 0, requestId: 'req_1', tenantId: 'ten_1', keyId: 'key_1', lane: 'interactive', fence: 1 } as const;

/** A lease at rate 1 that holds 50 tokens, of a tenant who could spend so many more. */
function leaseOf(spendable: number, left = Infinity) {
  const asked: Needed[] = [];
  const renew = (_ref: unknown, needed: Needed) => {
    asked.push(needed);
    return Promise.resolve(needed.usedMicro >= left ? ('exhausted' as const) : ('ok' as const));
  };
  const lease = createLease({ renew }, createRecordingLog(), {
    ref: REF,
    rates: { promptMicro: 1, completionMicro: 1 },
    maxTokens: 4_096,
    remainingMs: 60_000,
    admitted: { promptTokens: 0, completionTokens: 0 },
    credits: { heldMicro: 50, spendableMicro: spendable },
  });
  /** The answer grows, a token at a time. */
  const grow = async (tokens: number) => {
    for (let count = 1; count <= tokens && !lease.signal.aborted; count += 1) {
      lease.need({ promptTokens: 0, completionTokens: count });
      await Promise.resolve();
    }
  };
  return { lease, asked, grow };
}

describe('a lease', () => {
  it('renews by tokens where credits may not last, each time when what was asked for is used up', async () => {
    const { lease, asked, grow } = leaseOf(1_000);
    await grow(50);
    expect(asked).toEqual([]);
    await grow(400);
    expect(asked.map(({ usedMicro }) => usedMicro)).toEqual([51, 152, 254, 357]);
    lease.release();
  });

  it('ends a request about a hundred tokens behind the last credit, whatever its timer does', async () => {
    const { lease, asked, grow } = leaseOf(1_000, 120);
    await grow(4_096);
    expect(lease.signal.reason).toEqual(new Stopped('exhausted'));
    expect(asked.at(-1)?.usedMicro).toBeLessThanOrEqual(120 + 101);
    lease.release();
  });

  it('leaves it to its timer where there are credits for the longest answer', async () => {
    const { lease, asked, grow } = leaseOf(4_096);
    await grow(4_096);
    expect(asked).toEqual([]);
    lease.release();
  });
});
