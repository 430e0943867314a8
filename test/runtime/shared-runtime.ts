import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

import type SharedEnvironment from './shared-environment.ts';
import { setJestGlobals } from './current-globals.ts';

const require = createRequire(import.meta.url);
/** Where jest-circus keeps its event handlers; a new copy of it takes over what it finds there. */
const EVENT_HANDLERS = Symbol.for('EVENT_HANDLERS');

let count = 0;

/**
 * Jest's `runtime`: Node.js itself loads the tests, and what they import once for all files of a worker process.
 *
 * Jest's own runtime compiles and links some 1,500 modules again for every file, in a sandbox. The product opens
 * nothing and keeps no state when it is imported (docs/architecture.md), so that the files can share it. Only the
 * test file itself and jest-circus, which holds a file's tests, are loaded anew.
 */
export default class SharedRuntime {
  readonly #environment: SharedEnvironment;

  constructor(_config: unknown, environment: SharedEnvironment) {
    this.#environment = environment;
  }

  requireInternalModule(path: string): unknown {
    Reflect.deleteProperty(require.cache, path);
    Reflect.deleteProperty(globalThis, EVENT_HANDLERS);
    return require(path);
  }

  requireModule(path: string): unknown {
    return require(path);
  }

  unstable_shouldLoadAsEsm(): boolean {
    return true;
  }

  async unstable_importModule(path: string): Promise<unknown> {
    count += 1;
    return import(`${pathToFileURL(path).href}?run=${count}`);
  }

  setGlobalsForRuntime(globals: object): void {
    const { fakeTimersModern: timers, moduleMocker: mocker } = this.#environment;
    const jest = {
      fn: mocker.fn.bind(mocker),
      spyOn: mocker.spyOn.bind(mocker),
      useFakeTimers: timers.useFakeTimers.bind(timers),
      useRealTimers: timers.useRealTimers.bind(timers),
      advanceTimersByTime: timers.advanceTimersByTime.bind(timers),
      advanceTimersByTimeAsync: timers.advanceTimersByTimeAsync.bind(timers),
      getTimerCount: timers.getTimerCount.bind(timers),
    };
    setJestGlobals({ ...globals, jest });
  }

  getSourceMaps(): Map<string, string> {
    return new Map();
  }

  getAllCoverageInfoCopy(): undefined {
    return undefined;
  }

  teardown(): void {
    setJestGlobals({});
  }

  // Jest's own runtime counts here whether a test has ended before what it imports.
  enterTestCode(): void {
    return;
  }
  leaveTestCode(): void {
    return;
  }
}
