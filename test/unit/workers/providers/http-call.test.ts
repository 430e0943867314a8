import { expect, it } from '@jest/globals';

import { NetworkError } from '../../../../workers/providers/http-call.ts';

const withCode = (code: unknown, more: object = {}) => Object.assign(new Error('It failed'), { code }, more);
const caused = (cause: unknown) => Object.assign(new Error('It failed', { cause }), { code: undefined });

it.each([
  ['its own', withCode('ECONNRESET'), 'ECONNRESET'],
  ['that of the first address', new AggregateError([withCode('ECONNREFUSED'), withCode('EPERM')]), 'ECONNREFUSED'],
  ['that of its cause', caused(withCode('ENOTFOUND')), 'ENOTFOUND'],
  ['that of its cause’s first address', caused(new AggregateError([withCode('ETIMEDOUT')])), 'ETIMEDOUT'],
  ['none where the field has no value', withCode(undefined), ''],
  ['none where the field is a number of something else', new DOMException('Aborted', 'AbortError'), ''],
  ['none where there is no field', new Error('It failed'), ''],
  ['none where it is no error', undefined, ''],
])('a network fault has a code that can be looked up: %s', (_what, cause, code) => {
  const error = new NetworkError(cause, false);
  expect(error.code).toBe(code);
  expect(error.message).toBe(`The connection failed (${code === '' ? 'no code' : code})`);
});

it('a network fault that is its own cause ends', () => {
  const fault = new Error('It failed');
  fault.cause = fault;
  expect(new NetworkError(fault, false).code).toBe('');
});
