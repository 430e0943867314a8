/** Node.js runs TypeScript itself, and loads the product once for all test files of a process (test/runtime). */
export const project = (displayName, testMatch, extra = {}) => ({
  displayName,
  testMatch,
  testEnvironment: '<rootDir>/test/runtime/shared-environment.ts',
  runtime: '<rootDir>/test/runtime/shared-runtime.ts',
  injectGlobals: false,
  transform: {},
  modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/.data'],
  ...extra,
});

export const withStores = {
  globalSetup: '<rootDir>/test/support/start-stores.ts',
  globalTeardown: '<rootDir>/test/support/stop-stores.ts',
};

export default {
  // Ends what hangs; how fast something is asserts the test itself. A machine may be busy with other work.
  testTimeout: 60_000,
  // Three more than cores: many tests wait for leases and time limits. In turns on two cores four took 373 s, and left a
  // tenth of the time idle; five took 314 s.
  maxWorkers: 5,
  testSequencer: '<rootDir>/test/runtime/slowest-first.ts',
  // Files share what is loaded and leave their traces; it also keeps a single file out of the watching process.
  workerIdleMemoryLimit: '1GB',
  // On a busy machine a process without open handles takes longer to end than jest's 500 ms, and was taken for a leak.
  workerGracefulExitTimeout: 5_000,
  projects: [
    project('unit', ['<rootDir>/test/{unit,model}/**/*.test.ts']),
    project('stores', ['<rootDir>/test/{integration,api,guide}/**/*.test.ts'], withStores),
    project('e2e', ['<rootDir>/test/e2e/**/*.test.ts'], withStores),
    // Fault experiments in small: CI runs them, `npm test` where an argument names them (scripts/test.ts).
    project('faults', ['<rootDir>/test/fault/small/**/*.test.ts'], withStores),
  ],
};
