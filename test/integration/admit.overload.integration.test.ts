import { setTimeout as pause } from 'node:timers/promises';

import { beforeAll, describe, expect, it } from '@jest/globals';

import { newId } from '../../shared/lifecycle/ids.ts';
import { openAdmissionLab } from '../support/admission-lab.ts';
import type { AdmissionLab, LabKey } from '../support/admission-lab.ts';
import { useStarted } from '../support/use-service.ts';

const BODY = '{}';
const LIMIT = 60;
/** Three times what fits. */
const CALLERS = 3 * LIMIT;
/** Workers take one so often, however busy this machine is. */
const LEAVES_MS = 33;
/** Callers come one after the other. */
const COMING_MS = 2_000;
const RUN_MS = 13_000;
/** Until the line is full and the first ones who were promised a place have come back. */
const WARM_MS = 5_000;
/** As it was counted last: the workers have become slower by a tenth since. */
const PACE_MS = LEAVES_MS / 1.1;

const statisticsOf = (lab: AdmissionLab) => lab.keys.queueStatistics('interactive');
const lineOf = (lab: AdmissionLab) => lab.keys.line('interactive');

/** Takes requests out of the line as workers would; the callers whose requests left are told. */
function startWorkers(lab: AdmissionLab) {
  const served = new Map<string, () => void>();
  const seen = { longest: 0, shortest: Infinity };
  const startedAt = performance.now();
  let isOn = true;
  let taken = 0;
  async function work(): Promise<void> {
    while (isOn) {
      await pause(2 * LEAVES_MS);
      const waiting = await lab.redis.zcard(lineOf(lab));
      if (performance.now() - startedAt > WARM_MS) {
        seen.longest = Math.max(seen.longest, waiting);
        seen.shortest = Math.min(seen.shortest, waiting);
      }
      const due = Math.floor((performance.now() - startedAt) / LEAVES_MS) - taken;
      if (due < 1) continue;
      taken += due;
      const popped = await lab.redis.zpopmin(lineOf(lab), due);
      for (const requestId of popped) served.get(requestId)?.();
    }
    for (const leave of served.values()) leave();
  }
  const working = work();
  return {
    seen,
    leaves: (requestId: string) =>
      new Promise<void>((resolve) => {
        if (isOn) served.set(requestId, resolve);
        else resolve();
      }),
    stop() {
      isOn = false;
      return working;
    },
  };
}

/** Three times as many callers as there are places, who come back as they are told. */
async function overload(tenants: number) {
  const lab = await openAdmissionLab({ queueLimit: LIMIT });
  await lab.redis.hset(statisticsOf(lab), 'pace:lane', PACE_MS);
  const keys = await Promise.all(Array.from({ length: tenants }, () => lab.key()));
  for (const { principal } of keys)
    await lab.redis.hset(lab.keys.account(principal.tenantId), 'pace:own', PACE_MS * tenants);
  const ended = new AbortController();
  const workers = startWorkers(lab);
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  const back = { letIn: 0, sentAway: 0 };
  async function call(key: LabKey, number: number): Promise<void> {
    await pause((number * COMING_MS) / CALLERS);
    let isBack = false;
    while (elapsed() < RUN_MS) {
      const requestId = newId('req');
      const left = workers.leaves(requestId);
      const { verdict, retryAfterMs } = await key.admit({ requestId, body: BODY });
      if (isBack && elapsed() > WARM_MS) back[verdict === 'admitted' ? 'letIn' : 'sentAway'] += 1;
      isBack = verdict !== 'admitted';
      const told = Math.ceil(retryAfterMs / 1_000) * 1_000;
      await (isBack ? pause(told, undefined, { signal: ended.signal }).catch(() => undefined) : left);
    }
  }
  const callers = Array.from({ length: CALLERS }, (_, number) => keys[number % tenants]).filter(
    (key) => key !== undefined,
  );
  const calls = callers.map(call);
  await pause(RUN_MS);
  const seen = { ...workers.seen };
  ended.abort();
  await workers.stop();
  await Promise.all(calls);
  await lab.close();
  return { ...seen, ...back };
}

describe('three times as many callers as a line has places', () => {
  const CASES: [tenants: number, letInMin: number, limit: number][] = [
    [CALLERS, 0.95, LIMIT],
    // Now and then somebody who comes anew takes the place of another of the same tenant.
    [12, 0.85, LIMIT],
    // One tenant's requests fill half of the line.
    [1, 0.65, LIMIT / 2],
  ];
  let outcomes: Awaited<ReturnType<typeof overload>>[] = [];
  beforeAll(async () => {
    // At the same time, each with a line of its own, as nearly all of it is waiting.
    outcomes = await Promise.all(CASES.map(([tenants]) => overload(tenants)));
  }, 60_000);

  it.each(CASES.map((one, index) => [...one, index] as const))(
    'find room when they come back as told, of %d tenants',
    (_tenants, letInMin, limit, index) => {
      const { letIn = 0, sentAway = 0, longest, shortest } = outcomes[index] ?? {};

      const returned = letIn + sentAway;
      expect(returned).toBeGreaterThan(CALLERS / 2);
      expect(letIn / returned).toBeGreaterThanOrEqual(letInMin);
      expect(longest).toBeLessThanOrEqual(limit * 1.1);
      expect(shortest).toBeGreaterThan(limit / 3);
    },
  );
});

const fillLine = (lab: AdmissionLab) =>
  lab.redis.zadd(lineOf(lab), ...Array.from({ length: LIMIT }, (_, index) => [index, `req_${index}`]).flat());

describe('a tenant that sends far more than a full line has room for', () => {
  const lab = useStarted('lab', () => openAdmissionLab({ queueLimit: LIMIT }));
  /** As Redis keeps them: places of the line that are promised to callers of a tenant. */
  const promisedTo = ({ principal }: LabKey) => lab.redis.zcard(lab.keys.promises('interactive', principal.tenantId));

  it('is promised half of the places, and others are told a time with a place', async () => {
    await fillLine(lab);
    await lab.redis.hset(statisticsOf(lab), 'pace:lane', 500);
    const [greedy, modest] = [await lab.key(), await lab.key()];
    const told: number[] = [];
    for (let index = 0; index < 100; index += 1) told.push((await greedy.admit()).retryAfterMs);

    const refused = await modest.admit();

    // Promises lie 600 ms apart, and none is farther away than 30 s.
    expect(await promisedTo(greedy)).toBe(25);
    expect(told.at(-1)).toBe(30_000);
    expect(refused.verdict).toBe('lane');
    expect(refused.retryAfterMs).toBeLessThan(17_000);
    expect(await promisedTo(modest)).toBe(1);
  });
});

describe('who comes to a full line after it has become faster', () => {
  const lab = useStarted('lab', () => openAdmissionLab({ queueLimit: LIMIT }));

  it('is not told to wait behind what was promised in a slower time', async () => {
    await fillLine(lab);
    // One tenant alone is not promised so many places.
    const [key, other] = [await lab.key(), await lab.key()];
    await lab.redis.hset(statisticsOf(lab), 'pace:lane', 1_000);
    for (let index = 0; index < 20; index += 1)
      expect((await (index % 2 === 0 ? key : other).admit()).verdict).toBe('lane');
    expect((await key.admit()).retryAfterMs).toBeGreaterThan(20_000);

    await lab.redis.hset(statisticsOf(lab), 'pace:lane', 100);

    const told: number[] = [];
    for (let index = 0; index < 10; index += 1) told.push((await key.admit()).retryAfterMs);
    // 21 promises are out: the next places that are surely free lie behind as many times as 21 requests leave.
    expect(told[0]).toBeGreaterThan(2_100);
    expect(told[0]).toBeLessThan(3_000);
    expect([...told].sort((one, other) => one - other)).toEqual(told);
    expect(told[9]).toBeLessThan(5_000);
  });
});
