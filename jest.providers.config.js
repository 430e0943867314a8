import { project, withStores } from './jest.config.js';

/** `npm run test:providers`: against servers that nobody here wrote, which scripts/test-providers.ts starts. */
export default {
  testTimeout: 120_000,
  projects: [project('providers', ['<rootDir>/test/providers/**/*.test.ts'], withStores)],
};
