/** ES modules throughout: jest runs with --experimental-vm-modules (see scripts/launch.mjs). */
const swc = {
  jsc: { parser: { syntax: 'typescript' }, target: 'es2024' },
  module: { type: 'nodenext' },
};

export const project = (displayName, testMatch, extra = {}) => ({
  displayName,
  testMatch,
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': ['@swc/jest', swc] },
  modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/.data'],
  ...extra,
});

const withStores = {
  globalSetup: '<rootDir>/test/support/start-stores.ts',
  globalTeardown: '<rootDir>/test/support/stop-stores.ts',
};

export default {
  testTimeout: 20_000,
  // One more than cores: many tests wait for leases and time limits, and two left a third of two cores idle.
  maxWorkers: 3,
  projects: [
    project('unit', ['<rootDir>/test/{unit,model}/**/*.test.ts']),
    project('stores', ['<rootDir>/test/{integration,api,guide}/**/*.test.ts'], withStores),
    project('e2e', ['<rootDir>/test/e2e/**/*.test.ts'], withStores),
  ],
};
