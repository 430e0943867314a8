/** What stands for `@jest/globals` in a test (test/runtime/shared-runtime.ts): names that act on the file that runs. */
import { registerHooks } from 'node:module';

type Named = Record<string, unknown>;

/** jest-circus makes these anew for each test file, while a helper of test/support is loaded once for many. */
const running: { globals: Named } = { globals: {} };

export function setJestGlobals(globals: object): void {
  running.globals = globals as Named;
}

function delegate(name: string): unknown {
  const target = () => running.globals[name] as (...args: unknown[]) => unknown;
  return new Proxy(() => undefined, {
    apply: (_self, self, args) => Reflect.apply<unknown, unknown[], unknown>(target(), self, args),
    get: (_self, property) => Reflect.get(target(), property) as unknown,
  });
}

export const afterAll = delegate('afterAll');
export const afterEach = delegate('afterEach');
export const beforeAll = delegate('beforeAll');
export const beforeEach = delegate('beforeEach');
export const describe = delegate('describe');
export const expect = delegate('expect');
export const it = delegate('it');
export const jest = delegate('jest');
export const test = delegate('test');

registerHooks({
  resolve: (specifier, context, next) => next(specifier === '@jest/globals' ? import.meta.url : specifier, context),
});
