import { expect, it } from '@jest/globals';

import { describeError } from '../../../../shared/logging/logger.ts';

it('leaves the values out that a violated unique index names', () => {
  const cause = new Error('E11000 duplicate key error collection: x.y index: _id_ dup key: { _id: "ten_1 pupil-7" }');
  const text = describeError(new Error('A batch was refused', { cause }));

  expect(text).toContain('A batch was refused');
  expect(text).toContain('index: _id_ dup key\n');
  expect(text).not.toContain('pupil-7');
});
