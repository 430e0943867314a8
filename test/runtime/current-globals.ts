import { registerHooks } from 'node:module';

type Named = Record<string, unknown>;

/** What jest-circus has made for the test file that runs. */
const current: { globals: Named } = { globals: {} };

export function setJestGlobals(globals: object): void {
  current.globals = globals as Named;
}

export function jestGlobal(name: string): unknown {
  return current.globals[name];
}

const GLOBALS = new URL('jest-globals.ts', import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== '@jest/globals') return next(specifier, context);
    // A test file is loaded as `…?run=7`.
    return next(GLOBALS + new URL(context.parentURL ?? GLOBALS).search, context);
  },
});
