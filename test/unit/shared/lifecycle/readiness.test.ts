import { expect, it } from '@jest/globals';

import { createReadiness } from '../../../../shared/lifecycle/readiness.ts';

it('is ready when every check passes', async () => {
  const readiness = createReadiness({ redis: () => Promise.resolve('PONG'), mongo: () => Promise.resolve() });

  expect(await readiness.check()).toEqual({ ready: true, checks: { redis: 'ok', mongo: 'ok' } });
});

it('names the check that fails, and why to operators alone', async () => {
  const readiness = createReadiness({
    redis: () => Promise.resolve(),
    mongo: () => Promise.reject(new Error('connection refused')),
  });

  expect(await readiness.check()).toEqual({ ready: false, checks: { redis: 'ok', mongo: 'unavailable' } });
  expect(await readiness.details()).toEqual({ ready: false, checks: { redis: 'ok', mongo: 'connection refused' } });
});

it('does not wait for a store that hangs', async () => {
  const readiness = createReadiness({ redis: () => new Promise(() => undefined) }, { timeoutMs: 5 });

  expect(await readiness.check()).toEqual({ ready: false, checks: { redis: 'no answer in time' } });
  expect((await readiness.details()).checks).toEqual({ redis: 'no answer within 5 ms' });
});

it('asks the stores once a second, however often it is asked', async () => {
  let asked = 0;
  const redis = () => Promise.resolve((asked += 1));
  const readiness = createReadiness({ redis }, { freshMs: 60_000 });
  await Promise.all([readiness.check(), readiness.check(), readiness.details()]);
  await readiness.check();
  expect(asked).toBe(1);

  const eager = createReadiness({ redis }, { freshMs: 0 });
  await eager.check();
  await eager.check();
  expect(asked).toBe(3);
});
