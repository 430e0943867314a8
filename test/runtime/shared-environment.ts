import type { EnvironmentContext, JestEnvironment, JestEnvironmentConfig } from '@jest/environment';
import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';

import { countCosts } from './file-costs.ts';

/** The process itself as jest's test environment: no sandbox, so that all test files share what is loaded. */
export default class SharedEnvironment implements Pick<JestEnvironment, 'getVmContext' | 'setup' | 'teardown'> {
  /** Of jest's own: what it sets here must not outlive the test file. */
  readonly global = {};
  readonly fakeTimers = null;
  readonly fakeTimersModern: ModernFakeTimers;
  readonly moduleMocker = new ModuleMocker(globalThis);
  readonly #testConsole: Console;
  readonly #console = globalThis.console;
  readonly #env = { ...process.env };
  readonly #writeCosts: () => void;

  constructor({ projectConfig }: JestEnvironmentConfig, { console, testPath }: EnvironmentContext) {
    this.#writeCosts = countCosts(testPath);
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    this.#testConsole = console;
  }

  getVmContext(): null {
    return null;
  }

  setup(): Promise<void> {
    globalThis.console = this.#testConsole;
    return Promise.resolve();
  }

  teardown(): Promise<void> {
    this.fakeTimersModern.dispose();
    this.moduleMocker.restoreAllMocks();
    globalThis.console = this.#console;
    process.env = this.#env;
    this.#writeCosts();
    return Promise.resolve();
  }
}
