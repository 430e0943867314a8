import { describe, expect, it } from '@jest/globals';

import type { Principal } from '../../../shared/domain/principal.ts';
import { useRestoreLab } from '../../support/restore-lab.ts';
import { endingOf, needs } from '../../support/request-lab.ts';

const { puts, lab } = useRestoreLab();

const MANY = { rpm: 10_000, tpm: 10_000_000, dailyRequests: 0, chatRpm: 10_000, streamRpm: 10_000 };
/** Each lets two requests of a minute in, by the verdict that refuses the third. */
const LIMITS: Record<string, Partial<Principal>> = {
  rpm: { limits: { ...MANY, rpm: 2 } },
  throttle: { limits: { ...MANY, streamRpm: 2 } },
  tenant_rpm: { ceilings: { rpm: 2, tpm: null, inFlight: null } },
};
const IN_FLIGHT: Partial<Principal> = { ceilings: { rpm: null, tpm: null, inFlight: 2 } };

/** What becomes of the tenant's next request. */
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

  it.each(Object.entries(LIMITS))('while it runs: %s', async (verdict, more) => {
    expect(await next(await putBackRunning(more))).toBe(verdict);
  });

  it('while it runs: max_in_flight', async () => {
    expect(await next(await putBackRunning(IN_FLIGHT))).toBe('max_in_flight');
  });

  it.each(Object.entries(LIMITS))('once it has ended: %s', async (verdict, more) => {
    const principal = await lab.tenant(undefined, more);
    await lab.admit({ principal });
    const { repeat } = await puts.ended(principal);
    await puts.rollBack();
    expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

    expect(await next(principal)).toBe(verdict);
  });

  it.each(Object.entries(LIMITS))('a minute after its acceptance not any more: %s', async (_verdict, more) => {
    const principal = await lab.tenant(undefined, more);
    await lab.admit({ principal });
    const { request, ref } = await puts.running(principal, 61_000);
    await puts.rollBack();
    const ending = endingOf(request, 'Hello', { prompt: 10, completion: 5 });
    expect(await lab.requests.replayFinish(ref, 0, ending)).toBe('replayed');

    expect(await next(principal)).toBe('admitted');
  });

  it('once it has ended, it is in flight no more', async () => {
    const principal = await lab.tenant(undefined, IN_FLIGHT);
    await lab.admit({ principal });
    const { repeat } = await puts.ended(principal);
    await puts.rollBack();
    await repeat();

    expect(await next(principal)).toBe('admitted');
  });
});
