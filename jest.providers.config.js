import { project } from './jest.config.js';

/** `npm run test:providers`: against a server that nobody here wrote, which scripts/test-providers.ts starts. */
export default {
  testTimeout: 60_000,
  projects: [project('providers', ['<rootDir>/test/providers/**/*.test.ts'])],
};
