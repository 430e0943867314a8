import type { EnvironmentContext, JestEnvironment, JestEnvironmentConfig } from '@jest/environment';
import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';

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

  constructor({ projectConfig }: JestEnvironmentConfig, { console }: EnvironmentContext) {
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
    return Promise.resolve();
  }
}
