import { expect, it } from '@jest/globals';
import fc from 'fast-check';

import { isPlainSettlement, isSettlement, parseSettlement } from '../../../../shared/contracts/settlement.ts';

const RECORD = {
  requestId: 'req_1',
  tenantId: 'ten_1',
  keyId: 'key_1',
  mode: 'live',
  tier: 'mobius',
  endpoint: 'chat',
  entityId: 'ent_1',
  provider: '',
  model: '',
  promptTokens: 1,
  completionTokens: 2,
  estimated: false,
  costMicro: 3,
  finishReason: 'stop',
  acceptedAt: 4,
  finishedAt: 5,
};

const odd = fc.oneof(
  fc.constantFrom('', 'req_', 'req_2', ' ', 'live', '5', 0, -0, -1, 1.5, 2 ** 53, true, null, undefined),
  fc.anything(),
);
/** A record with any field replaced, left out or added. */
const changed = fc
  .tuple(fc.subarray([...Object.keys(RECORD), 'more', '__proto__'], { maxLength: 3 }), fc.array(odd, { minLength: 3 }))
  .map(([names, values]) => ({ ...RECORD, ...Object.fromEntries(names.map((name, at) => [name, values[at]])) }));

it('takes no record for plain that the schema refuses', () => {
  fc.assert(
    fc.property(fc.oneof(changed, odd), (value) => !isPlainSettlement(value) || isSettlement(value)),
    { numRuns: 2_000 },
  );
});

it('takes the records that workers write for plain', () => {
  expect(isPlainSettlement(RECORD)).toBe(true);
  expect(
    isPlainSettlement({ ...RECORD, entityId: undefined, mode: 'test', unknownField: { of: 'a newer version' } }),
  ).toBe(true);
});

it.each(Object.keys(RECORD).filter((name) => name !== 'entityId'))('refuses a record without its %s', (name) => {
  expect(parseSettlement(JSON.stringify({ ...RECORD, [name]: undefined }))).toBeUndefined();
});
