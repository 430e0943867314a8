import { expect, it } from '@jest/globals';

import { readSettings } from '../../../../scripts/start/settings.ts';

it.each(['PORT', 'ADMIN_PORT'])('npm start refuses a %s that it would not know, in a sentence', (setting) => {
  expect(() => readSettings({ [setting]: '0' }, [])).toThrow(
    `${setting} must be a port, 1 to 65535: npm start has to know where the service is reached.`,
  );
});

it('npm start takes 0 for the port of workers, which is off then', () => {
  expect(readSettings({ WORKER_PORT: '0' }, []).workerPorts).toEqual([0]);
});
