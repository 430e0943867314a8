import { expect, it } from '@jest/globals';

import { createReadiness } from '../../../../shared/lifecycle/readiness.ts';

it('is ready when every check passes', async () => {
  const readiness = createReadiness({ redis: () => Promise.resolve('PONG'), mongo: () => Promise.resolve() });

  expect(await readiness.check()).toEqual({ ready: true, checks: { redis: 'ok', mongo: 'ok' } });
});

it('names the check that fails and why', async () => {
  const readiness = createReadiness({
    redis: () => Promise.resolve(),
    mongo: () => Promise.reject(new Error('connection refused')),
  });

  expect(await readiness.check()).toEqual({ ready: false, checks: { redis: 'ok', mongo: 'connection refused' } });
});

it('does not wait for a store that hangs', async () => {
  const readiness = createReadiness({ redis: () => new Promise(() => undefined) }, 5);

  expect(await readiness.check()).toEqual({ ready: false, checks: { redis: 'no answer within 5 ms' } });
});
