import { describe, expect, it } from '@jest/globals';

import { newId } from '../../../shared/lifecycle/ids.ts';
import { openAdmissionLab } from '../../support/admission-lab.ts';
import type { AdmissionLab, LabKey } from '../../support/admission-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const LIMIT = 20;
/** Workers take a request so often. */
const PACE_MS = 100;
/** Callers for each place. */
const CALLERS_OF_PLACE = 2.5;
/** Until the queue is full and the first callers have come back. */
const WARM_MS = 15_000;
const RUN_MS = 75_000;
/** So many come back at least. */
const RETURNS_MIN = 40;
/** A caller whose request has left the queue sends the next one after at most this time. */
const THINK_MS = 2_000;

/** The same numbers in each run, from 0 to 1. */
function createChance(): () => number {
  let seed = 1;
  return () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
}

interface Caller {
  key: LabKey;
  at: number;
  isBack: boolean;
}

/**
 * More than twice as many callers as the queue has places, each of whom sends the next request when the last has left the
 * queue, or comes back when told. The test says what time it is.
 */
async function overload(lab: AdmissionLab, tenants: number, places: number) {
  const line = lab.keys.prioritized('interactive');
  await lab.redis.hset(lab.keys.queueStatistics('interactive'), 'pace:queue', PACE_MS);
  const keys = await Promise.all(Array.from({ length: tenants }, () => lab.key()));
  for (const { principal } of keys) await lab.redis.hset(lab.keys.account(principal.tenantId), 'pace:own', PACE_MS);
  const chance = createChance();
  const startedAt = Date.now();
  let idle = Array.from({ length: CALLERS_OF_PLACE * places }, (_, number): Caller[] => {
    const key = keys[number % tenants];
    return key === undefined ? [] : [{ key, at: number * PACE_MS, isBack: false }];
  }).flat();
  const waiting = new Map<string, Caller>();
  const seen = { letIn: 0, sentAway: 0, longest: 0 };
  for (let now = 0; now < RUN_MS; now += PACE_MS) {
    const [requestId = ''] = await lab.redis.zpopmin(line);
    const served = waiting.get(requestId);
    waiting.delete(requestId);
    if (served !== undefined) idle.push({ ...served, at: now + chance() * THINK_MS, isBack: false });
    const due = idle.filter(({ at }) => at < now + PACE_MS).sort((one, other) => one.at - other.at);
    idle = idle.filter((caller) => !due.includes(caller));
    for (const caller of due) {
      await lab.setTime(startedAt + Math.round(caller.at));
      const id = newId('req');
      const { verdict, retryAfterMs } = await caller.key.admit({ requestId: id, body: '{}' });
      const isLetIn = verdict === 'admitted';
      if (caller.isBack && now > WARM_MS) seen[isLetIn ? 'letIn' : 'sentAway'] += 1;
      if (isLetIn) waiting.set(id, caller);
      else idle.push({ ...caller, at: caller.at + Math.ceil(retryAfterMs / 1_000) * 1_000, isBack: true });
    }
    seen.longest = Math.max(seen.longest, waiting.size);
  }
  return seen;
}

describe('under a steady overload by more than twice as many callers as a queue has places', () => {
  const lab = useStarted('lab', () => openAdmissionLab({ queueLimit: LIMIT, isClocked: true }));

  it.each([
    [50, LIMIT],
    // One tenant's requests fill half of the queue.
    [1, LIMIT / 2],
  ])('at least four of five callers of %d tenants who come back when told are let in', async (tenants, places) => {
    const { letIn, sentAway, longest } = await overload(lab, tenants, places);

    expect(letIn + sentAway).toBeGreaterThan(RETURNS_MIN);
    expect(letIn / (letIn + sentAway)).toBeGreaterThanOrEqual(0.8);
    expect(longest).toBeLessThanOrEqual(places);
    await lab.redis.del(lab.keys.prioritized('interactive'), lab.keys.queueStatistics('interactive'));
  });
});
