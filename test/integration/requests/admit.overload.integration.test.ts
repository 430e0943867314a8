import { describe, expect, it } from '@jest/globals';

import { newId } from '../../../shared/lifecycle/ids.ts';
import { openAdmissionLab } from '../../support/admission-lab.ts';
import type { AdmissionLab, LabKey } from '../../support/admission-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const BODY = '{}';
const LIMIT = 20;
/** Workers take a request so often. */
const PACE_MS = 100;
const CALLERS = 2.5 * LIMIT;
/** Until the queue is full and the first callers have come back. */
const WARM_MS = 15_000;
const RUN_MS = 75_000;
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

/** Makes what is left of the time that was told last this many ms. */
async function moveTold(lab: AdmissionLab, hash: string, field: string, leftMs: number): Promise<void> {
  const [seconds = 0, micros = 0] = (await lab.redis.time()).map(Number);
  await lab.redis.hset(hash, field, Math.round(seconds * 1_000 + micros / 1_000 + leftMs));
}

/**
 * More than twice as many callers as the queue has places, each of whom sends the next request when the last has left the queue,
 * or comes back when told. No time passes: the time that callers were told last is moved instead.
 */
async function overload(lab: AdmissionLab, tenants: number) {
  const line = lab.keys.line('interactive');
  const statistics = lab.keys.queueStatistics('interactive');
  await lab.redis.hset(statistics, 'pace:lane', PACE_MS);
  const keys = await Promise.all(Array.from({ length: tenants }, () => lab.key()));
  for (const { principal } of keys) await lab.redis.hset(lab.keys.account(principal.tenantId), 'pace:own', PACE_MS);
  const told = tenants > 1 ? statistics : lab.keys.account(keys[0]?.principal.tenantId ?? '');
  const field = tenants > 1 ? 'retry:lane' : 'retry:own';
  const chance = createChance();
  const callers = Array.from({ length: CALLERS }, (_, number): Caller[] => {
    const key = keys[number % tenants];
    return key === undefined ? [] : [{ key, at: number * PACE_MS, isBack: false }];
  }).flat();
  const waiting = new Map<string, Caller>();
  const seen = { letIn: 0, sentAway: 0, longest: 0 };
  let [taken, toldUntil] = [0, 0];
  async function take(): Promise<void> {
    taken += PACE_MS;
    const [requestId = ''] = await lab.redis.zpopmin(line);
    const caller = waiting.get(requestId);
    if (caller !== undefined) Object.assign(caller, { at: taken + chance() * THINK_MS, isBack: false });
    waiting.delete(requestId);
  }
  for (;;) {
    const caller = callers.filter((one) => ![...waiting.values()].includes(one)).sort((a, b) => a.at - b.at)[0];
    if (caller === undefined || taken + PACE_MS <= caller.at) {
      await take();
      continue;
    }
    const { at, isBack, key } = caller;
    if (at > RUN_MS) return seen;
    const requestId = newId('req');
    await moveTold(lab, told, field, toldUntil - at);
    const { verdict, retryAfterMs, now } = await key.admit({ requestId, body: BODY });
    if (isBack && at > WARM_MS) seen[verdict === 'admitted' ? 'letIn' : 'sentAway'] += 1;
    if (verdict === 'admitted') waiting.set(requestId, caller);
    else Object.assign(caller, { at: at + Math.ceil(retryAfterMs / 1_000) * 1_000, isBack: true });
    toldUntil = at + Number(await lab.redis.hget(told, field)) - now;
    seen.longest = Math.max(seen.longest, waiting.size);
  }
}

describe('under a steady overload by more than twice as many callers as a queue has places', () => {
  const lab = useStarted('lab', () => openAdmissionLab({ queueLimit: LIMIT }));

  it.each([
    [CALLERS, LIMIT],
    // One tenant's requests fill half of the queue.
    [1, LIMIT / 2],
  ])(
    'at least four of five callers of %d tenants who come back when told are let in',
    async (tenants, limit) => {
      const { letIn, sentAway, longest } = await overload(lab, tenants);

      expect(letIn + sentAway).toBeGreaterThan(CALLERS);
      expect(letIn / (letIn + sentAway)).toBeGreaterThanOrEqual(0.8);
      expect(longest).toBeLessThanOrEqual(limit);
      await lab.redis.del(lab.keys.line('interactive'), lab.keys.queueStatistics('interactive'));
    },
    60_000,
  );
});
