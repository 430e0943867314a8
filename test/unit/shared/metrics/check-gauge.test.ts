import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';

import { gaugeChecks } from '../../../../shared/metrics/registry.ts';

it('shows each check as it is whenever the page is read', async () => {
  const registry = new Registry();
  let redis = 'ok';
  gaugeChecks([registry], { checks: () => Promise.resolve({ redis, mongo: 'ok' }) });
  expect(await registry.metrics()).toContain('parley_check_passes{check="redis"} 1');

  redis = 'no answer in time';

  const page = await registry.metrics();
  expect(page).toContain('parley_check_passes{check="redis"} 0');
  expect(page).toContain('parley_check_passes{check="mongo"} 1');

  redis = 'ok';

  expect(await registry.metrics()).toContain('parley_check_passes{check="redis"} 1');
});
