import { expect, it } from '@jest/globals';

import { parseEnvelope, parseStoredRequest, UnreadableError } from '../../../../shared/contracts/jobs.ts';

const REQUEST = { messages: [{ role: 'user', content: 'A secret' }], maxTokens: 100, jsonMode: false };

const ENVELOPE = {
  requestId: 'req_1',
  tenantId: 'ten_1',
  keyId: 'key_1',
  mode: 'live',
  endpoint: 'chat',
  tier: 'mobius',
  stream: false,
  acceptedAt: 1,
  retentionMs: 3,
  tenant: {},
  request: REQUEST,
};

it('reads what the ingress stores, with fields of newer code', () => {
  const stored = { ...ENVELOPE, more: 1 };

  expect(parseEnvelope(JSON.stringify(stored))).toEqual(stored);
  expect(parseStoredRequest(JSON.stringify(REQUEST))).toEqual(REQUEST);
});

it.each([
  ['is cut off', JSON.stringify(ENVELOPE).slice(0, -9)],
  ...['requestId', 'tenantId', 'keyId', 'mode', 'tier', 'acceptedAt', 'retentionMs', 'tenant', 'request'].map(
    (name) => [`has no ${name}`, JSON.stringify({ ...ENVELOPE, [name]: undefined })],
  ),
  ['has a message without text', JSON.stringify({ ...ENVELOPE, request: { ...REQUEST, messages: [null] } })],
])('refuses a body that %s, and shows nothing of it', (_what, json = '') => {
  const read = () => parseEnvelope(json);

  expect(read).toThrow(UnreadableError);
  expect(read).not.toThrow(/secret/);
});
