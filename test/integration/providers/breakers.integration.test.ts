import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

import type { Breaker } from '../../../shared/domain/breaker.ts';
import { BreakerOpenError } from '../../../workers/pipeline/breakers.ts';
import { call, failure, openBreakerLab, providerOf, refusal } from '../../support/breaker-lab.ts';
import type { BreakerLab, LabWorker } from '../../support/breaker-lab.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';

/** On a busy machine none of them decides alone. */
const CALL_MS = 20_000;

let lab: BreakerLab;
let workers: LabWorker[];
let first: LabWorker;
let second: LabWorker;
beforeEach(async () => {
  lab = await openBreakerLab();
  workers = [];
  for (let number = 0; number < 4; number += 1) workers.push(await lab.startWorker({ callMs: CALL_MS }));
  [first, second] = workers as [LabWorker, LabWorker];
});
afterEach(async () => {
  await lab.close();
});

const isOpen = ({ state }: Breaker) => state === 'open';

/** Resolves once every one of them honours the state. */
function untilAll(those: readonly LabWorker[], provider: Parameters<LabWorker['isPassable']>[0], passable: boolean) {
  return waitFor(
    () => (those.every((worker) => worker.isPassable(provider) === passable) ? true : undefined),
    `${those.length} workers to ${passable ? 'call' : 'skip'} the provider`,
  );
}

describe('a breaker', () => {
  it('of which Redis has no readable state keeps no other from being read, and is written anew', async () => {
    const [broken, provider] = [providerOf(), providerOf({ openMs: 60_000, maxOpenMs: 60_000 })];
    await call(first, provider, 10, failure);
    await lab.until(provider, isOpen, 'the breaker to open');
    await lab.redis.hset(lab.states, broken.name, '{"state":');
    await lab.redis.publish(lab.channel, `${broken.name}\n{"state":`);

    const late = await lab.startWorker({ isDeaf: true });

    expect(late.isPassable(provider)).toBe(false);
    await call(late, broken, 10, failure);
    await lab.until(broken, isOpen, 'the other breaker to open');
  });

  it('that one worker opens is honoured by all of them within a second', async () => {
    const provider = providerOf({ openMs: 60_000, maxOpenMs: 60_000 });
    const deaf = await lab.startWorker({ isDeaf: true });
    await call(deaf, provider, 1);

    await call(first, provider, 10, failure);
    await lab.until(provider, isOpen, 'the breaker to open');
    const openedAt = performance.now();
    await untilAll([...workers, deaf], provider, false);

    // One second is promised; a machine with other work may be late by the rest.
    expect(performance.now() - openedAt).toBeLessThan(3_000);
    for (const worker of workers) expect(await call(worker, provider, 3)).toBe(3);
  });

  it('is honoured by a worker that starts later, from its first call on', async () => {
    const provider = providerOf({ openMs: 60_000, maxOpenMs: 60_000 });
    await call(first, provider, 1, refusal);
    await lab.until(provider, isOpen, 'the breaker to open');

    const late = await lab.startWorker();

    expect(await call(late, provider, 1)).toBe(1);
  });

  it('costs a healthy provider no call of Redis', async () => {
    const provider = providerOf();

    await call(first, provider, 1_000);

    expect(first.changes()).toBe(0);
    expect(await lab.shared(provider)).toMatchObject({ version: 0 });
  });
});

/** A provider whose breaker is open, its pause over; and calls that end when the test says so. */
async function readyForProbe() {
  const provider = providerOf({ openMs: 30_000, maxOpenMs: 60_000 });
  await call(first, provider, 1, refusal);
  await untilAll(workers, provider, false);
  // As if the pause had passed.
  await lab.store.change(provider.name, (breaker, now) => ({ ...breaker, retryAt: now }));
  await untilAll(workers, provider, true);
  const running: { end(error?: Error): void }[] = [];
  let skipped = 0;
  const ask = (worker: LabWorker) =>
    worker
      .guard(provider, () => {
        const held = Promise.withResolvers<undefined>();
        running.push({
          end: (error) => {
            if (error === undefined) held.resolve(undefined);
            else held.reject(error);
          },
        });
        return held.promise;
      })
      .catch((error: unknown) => {
        if (error instanceof BreakerOpenError) skipped += 1;
      });
  return { provider, running, ask, skipped: () => skipped };
}

describe('a half-open breaker', () => {
  it('lets one call through, however many workers try at once, and closes when it succeeds', async () => {
    const { provider, running, ask, skipped } = await readyForProbe();

    const asked = workers.flatMap((worker) => Array.from({ length: 5 }, () => ask(worker)));
    await waitUntil(() => skipped() === 19, 'all others to be skipped');

    expect(running).toHaveLength(1);
    expect(await lab.shared(provider)).toMatchObject({ state: 'half_open' });
    running[0]?.end();
    await Promise.all(asked);
    expect(await lab.until(provider, ({ state }) => state === 'closed', 'it to close')).toMatchObject({
      reason: 'probe_succeeded',
    });
    await untilAll(workers, provider, true);
    expect(await call(second, provider, 5)).toBe(0);
    expect(lab.changes.map(({ to }) => to)).toEqual(['open', 'half_open', 'closed']);
  });
});
