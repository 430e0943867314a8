import { describe, expect, it } from '@jest/globals';

import type { DeliveryRef } from '../../../shared/requests/delivery.ts';
import { rollBackTo } from '../../support/restore-lab.ts';
import { endingOf, openRequestLab, RATE, SHARD } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const lab = useStarted('lab', openRequestLab);

describe('a charge that the account could not pay in full', () => {
  /** An answer of 1,003 tokens, of which the tenant can pay 40 and the overdraft. */
  async function overspent() {
    const principal = await lab.tenant(40 * RATE);
    const before = await lab.snapshot();
    const request = await lab.admit({ principal, promptTokens: 3, maxTokens: 10 });
    const { owner } = await lab.run(request, 1);
    const ref = { ...request.ref(1), owner };
    const ending = { ...endingOf(request, 'a', { prompt: 3, completion: 1_000 }), overdraftMicro: 20 * RATE };
    expect(await lab.requests.finish(ref, 0, ending)).toBe(true);
    return { ref, ending, before };
  }

  async function costOf({ requestId }: DeliveryRef): Promise<number | undefined> {
    const records = (await lab.outbox.read(SHARD, 'new', 1_000)).map(({ record }) => record);
    return records.find((record) => record?.requestId === requestId)?.costMicro;
  }

  it('is the same where Redis has lost all of the request', async () => {
    const { ref, ending, before } = await overspent();
    await rollBackTo(lab, before);

    expect(await lab.requests.replayFinish(ref, 0, ending)).toBe('replayed');

    expect(await costOf(ref)).toBe(60 * RATE);
  });

  it('is the same where the answer to its end was lost before that', async () => {
    const { ref, ending, before } = await overspent();
    const repeated = { ...ending };
    expect(await lab.requests.finish(ref, 0, repeated)).toBe(true);
    await rollBackTo(lab, before);

    await lab.requests.replayFinish(ref, 0, repeated);

    expect(await costOf(ref)).toBe(60 * RATE);
  });
});
