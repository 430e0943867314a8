import { project } from './jest.config.js';

/** `npm run test:clients`: clients that nobody here wrote, which test/clients/set-up.ts installs, on real processes. */
export default {
  testTimeout: 60_000,
  projects: [
    project('clients', ['<rootDir>/test/clients/**/*.test.ts'], {
      globalSetup: '<rootDir>/test/clients/set-up.ts',
      globalTeardown: '<rootDir>/test/support/stop-stores.ts',
    }),
  ],
};
