import { describe, expect, it } from '@jest/globals';

import { parseChatBody } from '../../../../api/chat/chat-body.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';

/** What becomes of metadata that was sent as this JSON text: the text that is echoed, or the message of the refusal. */
function outcomeOf(json: string): string {
  try {
    const body: unknown = JSON.parse(`{"messages":[{"role":"user","content":"Hi"}],"metadata":${json}}`);
    return parseChatBody(body).request.metadataJson ?? '';
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    expect([error.code, error.param]).toEqual(['invalid_request', 'metadata']);
    return error.message;
  }
}

const nested = (depth: number) => '{"a":'.repeat(depth) + '1' + '}'.repeat(depth);
const ofBytes = (bytes: number, unit = 'a') =>
  `{"k":"${unit.repeat((bytes - '{"k":""}'.length) / Buffer.byteLength(unit))}"}`;

describe('metadata', () => {
  it.each([
    ['nothing in it', '{}'],
    ['values of every kind', '{"a":null,"b":[1,"x",{"c":true}]}'],
    ['five levels', nested(5)],
    ['five levels of lists', '{"a":[[[[]]]]}'],
    ['16,384 bytes', ofBytes(16_384)],
    ['16,384 bytes of two-byte characters', ofBytes(16_384, 'é')],
  ])('metadata is echoed as it was sent with %s', (_what, json) => {
    expect(outcomeOf(json)).toBe(json);
  });

  it('keeps keys that look like methods of every object', () => {
    expect(outcomeOf('{"toJSON":1,"toString":2,"hasOwnProperty":3}')).toBe(
      '{"toJSON":1,"toString":2,"hasOwnProperty":3}',
    );
  });

  it.each([
    ['six levels', nested(6)],
    ['5,000 levels', nested(5_000)],
    ['six levels of lists', '{"a":[[[[[1]]]]]}'],
  ])('is refused when it is nested too deep: %s', (_what, json) => {
    expect(outcomeOf(json)).toBe('`metadata` must not be nested deeper than 5 levels.');
  });

  it.each([
    ['16,385 bytes', ofBytes(16_385)],
    ['16,386 bytes of two-byte characters', ofBytes(16_386, 'é')],
    ['9,001 values', `{"a":[${'1,'.repeat(9_000)}1]}`],
    ['20,000 values', `{"a":[${'1,'.repeat(19_999)}1]}`],
  ])('metadata is refused above 16 KiB: %s', (_what, json) => {
    expect(outcomeOf(json)).toBe('`metadata` must not exceed 16384 bytes as JSON.');
  });

  it.each(['{"a":1e400}', '{"a":[{"b":-1e309}]}'])(
    'metadata is refused with a number that would come back as null: %s',
    (json) => {
      expect(outcomeOf(json)).toBe(
        '`metadata` must not contain numbers beyond 1.7976931348623157e+308; send them as strings.',
      );
    },
  );

  it('metadata is refused with the key __proto__ at any level', () => {
    const poisoned = ['{"__proto__":1}', '{"a":{"__proto__":{}}}', '{"a":[[{"b":{"__proto__":null}}]]}'];
    for (const json of poisoned) expect(outcomeOf(json)).toBe('`metadata` must not contain the key __proto__.');
  });

  it.each(['{"a":"__proto__"}', '{"constructor":"McLaren"}', '{"prototype":true,"a":{"toString":1,"$set":{"a.b":2}}}'])(
    'metadata may be any other words: %s',
    (json) => {
      expect(outcomeOf(json)).toBe(json);
    },
  );
});
