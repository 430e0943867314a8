import type { Chance } from '../support/chance.ts';

/** Texts that break programs: other planes, halves of a character, control characters, other languages' syntax. */
export const STRANGE_TEXTS: readonly string[] = [
  ...['', ' ', '\t\n', '0', '-1', 'null', 'true', '[object Object]', 'undefined', 'NaN'],
  ...['\u0000', 'a\u0000b', '\u0001\u001f\u007f', '\ud800', '\udfff', 'a\ud83d', '\udc00b', '\ufeff', '\uffff'],
  ...['😀', '👩‍👩‍👧‍👦', 'e\u0301\u0327', '\u202eabc', '\u2028\u2029', 'ﷺ'.repeat(40), 'İıſ'],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty'],
  ...['$where', '$ne', '{"$gt": ""}', "' OR 1=1 --", '../../etc/passwd', '%00', '%2e%2e%2f', '${7*7}', '{{7*7}}'],
  ...['<script>alert(1)</script>', '\r\nX-Injected: 1', 'a,b;c', '*', '?', '#', '/', '\\'],
];

const STRANGE_NUMBERS: readonly number[] = [
  ...[0, -0, -1, 1, 0.1, 1.5, 1e-7, 2 ** 31, 2 ** 32, 2 ** 53, -(2 ** 53), 2 ** 63, 1e21, 1e308, -1e308],
];

const DEPTH = 40;
const HUGE_CHARACTERS = 20_000;

function nest(depth: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < depth; level += 1) value = wrap(value);
  return value;
}

/** An object with a field of its own that an assignment would take for the prototype. */
export function poisoned(name: string): unknown {
  return Object.fromEntries([[name, { isAdmin: true, length: 1 }]]);
}

/** Any JSON value, more often a bad one than a good one. */
export function strangeValue(chance: Chance): unknown {
  const makers: readonly (() => unknown)[] = [
    () => null,
    () => chance.is(0.5),
    () => chance.pick(STRANGE_NUMBERS),
    () => chance.pick(STRANGE_TEXTS),
    () => chance.pick(STRANGE_TEXTS),
    () => 'x'.repeat(chance.below(HUGE_CHARACTERS)),
    () => [],
    () => ({}),
    () => [null, [], {}],
    () => Array.from({ length: 200 }, () => 1),
    () => poisoned(chance.pick(['__proto__', 'constructor', 'prototype'])),
    () => ({ $gt: '' }),
    () => nest(DEPTH, (inner) => [inner]),
    () => nest(DEPTH, (inner) => ({ a: inner })),
  ];
  return chance.pick(makers)();
}
