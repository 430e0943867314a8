/** What stands for `@jest/globals` in tests: those of the test file that runs (current-globals.ts). */
import { jestGlobal } from './current-globals.ts';

/** A test file has a copy of this module, so that it gets the functions themselves, and stack traces end in it. */
const isOfOneFile = new URL(import.meta.url).search !== '';

/** A helper of test/support is loaded once for many test files, and must act on the one that runs. */
function delegate(name: string): unknown {
  const target = () => jestGlobal(name) as (...args: unknown[]) => unknown;
  return new Proxy(() => undefined, {
    apply: (_self, self, args) => Reflect.apply<unknown, unknown[], unknown>(target(), self, args),
    get: (_self, property) => Reflect.get(target(), property) as unknown,
  });
}

const give = isOfOneFile ? jestGlobal : delegate;

export const afterAll = give('afterAll');
export const afterEach = give('afterEach');
export const beforeAll = give('beforeAll');
export const beforeEach = give('beforeEach');
export const describe = give('describe');
export const expect = give('expect');
export const it = give('it');
export const jest = give('jest');
export const test = give('test');
