import { expect, it } from '@jest/globals';

import { describeError } from '../../../../shared/logging/logger.ts';

it('leaves the values out that a violated unique index names', () => {
  const cause = new Error('E11000 duplicate key error collection: x.y index: _id_ dup key: { _id: "ten_1 pupil-7" }');
  const text = describeError(new Error('A batch was refused', { cause }), false);

  expect(text).toContain('A batch was refused');
  expect(text).toMatch(/index: _id_ dup key$/);
  expect(text).not.toContain('pupil-7');
});

it.each([
  ['with', true],
  ['without', false],
])('names an error and its causes %s their stacks', (_how, withStack) => {
  const text = describeError(new Error('outer', { cause: new TypeError('inner') }), withStack);

  expect(text).toContain('Error: outer');
  expect(text).toContain('\ncaused by TypeError: inner');
  expect(text.includes('    at ')).toBe(withStack);
});
