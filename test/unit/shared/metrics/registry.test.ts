import { expect, it } from '@jest/globals';

import { createRegistry, EVENT_LOOP_LOOK_MS } from '../../../../shared/metrics/registry.ts';
import { waitFor } from '../../../support/wait-for.ts';

/** A timer of libuv goes by whole milliseconds. */
const ROUNDED_MS = 2;

it('a process wakes no more often than 20 times a second to see how late its event loop is', async () => {
  const registry = createRegistry('test');
  /** Between two looks since the last call; the largest number there is where there were none. */
  const leastMs = async () =>
    Number(/^nodejs_eventloop_lag_min_seconds\{.*\} (\S+)$/m.exec(await registry.metrics())?.[1]) * 1_000;

  expect(EVENT_LOOP_LOOK_MS).toBeGreaterThanOrEqual(50);
  // One look may be late, and the next one in time.
  await waitFor(
    async () => {
      const found = await leastMs();
      return found >= EVENT_LOOP_LOOK_MS - ROUNDED_MS && found < 60_000 ? true : undefined;
    },
    'looks that are so far apart',
    10_000,
  );
});
