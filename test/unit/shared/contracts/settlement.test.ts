import { expect, it } from '@jest/globals';

import { parseSettlement } from '../../../../shared/contracts/settlement.ts';

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

it('takes the records that workers write, and those of a newer version', () => {
  const newer = { ...RECORD, entityId: undefined, mode: 'test', unknownField: { of: 'a newer version' } };
  expect(parseSettlement(JSON.stringify(RECORD))).toEqual(RECORD);
  expect(parseSettlement(JSON.stringify(newer))).toMatchObject({ mode: 'test' });
});

it.each(Object.keys(RECORD).filter((name) => name !== 'entityId'))('refuses a record without its %s', (name) => {
  expect(parseSettlement(JSON.stringify({ ...RECORD, [name]: undefined }))).toBeUndefined();
});

it.each([
  { requestId: 'other_1' },
  { tenantId: '' },
  { mode: 'both' },
  { entityId: '' },
  { provider: 1 },
  { promptTokens: '1' },
  { costMicro: -1 },
  { finishedAt: 1.5 },
  { estimated: 'false' },
  { spend: { currency: 'eur' } },
])('refuses a record with %p', (wrong) => {
  expect(parseSettlement(JSON.stringify({ ...RECORD, ...wrong }))).toBeUndefined();
});
