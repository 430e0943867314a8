import { project, withStores } from './jest.config.js';

/** `npm run test:console`: every page of the console in Chromium, on a real service; the pictures of docs/console. */
export default {
  testTimeout: 120_000,
  maxWorkers: 1,
  projects: [project('console', ['<rootDir>/test/console/**/*.test.ts'], withStores)],
};
