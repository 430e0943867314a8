import { expect, it } from '@jest/globals';
import fc from 'fast-check';

import {
  isEnvelope,
  isPlainEnvelope,
  parseEnvelope,
  UnreadableError,
} from '../../../../shared/contracts/request-envelope.ts';

const REQUEST = {
  messages: [{ role: 'user', content: 'Hi' }],
  model: 'mobius',
  maxTokens: 100,
  entityId: 'ent_1',
  subject: 'physics',
  grade: '7',
  metadataJson: '{}',
  jsonMode: false,
  sampling: { temperature: 1 },
};

const ENVELOPE = {
  requestId: 'req_1',
  tenantId: 'ten_1',
  keyId: 'key_1',
  mode: 'live',
  endpoint: 'chat',
  tier: 'mobius',
  stream: false,
  acceptedAt: 1,
  replayedAt: 2,
  retentionMs: 3,
  tenant: { subject: 'physics', grade: '7', moderation: { disabled: [] } },
  request: REQUEST,
};

const KEPT = { storedMs: 1, idempotency: { name: 'a', fingerprint: 'b' } };

const odd = fc.oneof(
  fc.constantFrom('', 'live', 'chat', 'oloid', '5', 0, -1, 1.5, 2 ** 53, NaN, Infinity, true, null, undefined, [], {}),
  fc.constantFrom([{ role: 'user' }], [{ role: 'nobody', content: '' }], [null], [undefined], { role: 'user' }),
  fc.anything(),
);

/** The object with any fields replaced, left out or added. */
function changed<T extends object>(of: T) {
  const names = [...Object.keys(of), 'kept', 'more', '__proto__'];
  return fc
    .tuple(fc.subarray(names, { maxLength: 3 }), fc.array(odd, { minLength: 3 }))
    .map(([some, values]) => ({ ...of, ...Object.fromEntries(some.map((name, at) => [name, values[at]])) }));
}

const envelopes = fc.oneof(
  changed(ENVELOPE),
  changed(REQUEST).map((request) => ({ ...ENVELOPE, request })),
  changed(ENVELOPE.tenant).map((tenant) => ({ ...ENVELOPE, tenant })),
  odd,
);

it('takes no body for plain that the schema refuses', () => {
  fc.assert(
    fc.property(envelopes, (value) => !isPlainEnvelope(value) || isEnvelope(value)),
    { numRuns: 3_000 },
  );
});

it('takes the bodies that the ingress stores for plain', () => {
  const { replayedAt, ...first } = ENVELOPE;
  expect(replayedAt).toBe(2);
  expect(isPlainEnvelope(ENVELOPE)).toBe(true);
  const request = { messages: REQUEST.messages, maxTokens: 1, jsonMode: true };
  expect(isPlainEnvelope({ ...first, tenant: {}, request, traceparent: '00-1-2-01' })).toBe(true);
});

it.each(['requestId', 'tenantId', 'keyId', 'mode', 'endpoint', 'tier', 'stream', 'acceptedAt', 'retentionMs'])(
  'names the missing %s of a body that cannot be read',
  (name) => {
    const read = () => parseEnvelope(JSON.stringify({ ...ENVELOPE, [name]: undefined }));
    expect(read).toThrow(new UnreadableError(`The body of the request has no readable \`${name}\`.`));
  },
);

it('reads how an answer is kept, and refuses what is not', () => {
  expect(parseEnvelope(JSON.stringify({ ...ENVELOPE, kept: KEPT })).kept).toEqual(KEPT);
  expect(() => parseEnvelope(JSON.stringify({ ...ENVELOPE, kept: { storedMs: 'long' } }))).toThrow('`kept.storedMs`');
  expect(() => parseEnvelope(JSON.stringify({ ...ENVELOPE, idempotency: { name: 'a' } }))).toThrow(
    '`idempotency.fingerprint`',
  );
});
