import { describe, expect, it } from '@jest/globals';

describe('the stores of a test run', () => {
  it('x', () => {
    expect(process.env['TEST_REDIS_URL']).toMatch(/^redis:/);
    expect(process.env['TEST_MONGODB_URI']).toMatch(/^mongodb:/);
  });
});
