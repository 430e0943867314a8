import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import {
  isPlainBody,
  parseChatBody,
  parseChatStreamBody,
  UNSERVED_WITHOUT_STREAM,
} from '../../../../api/chat/chat-body.ts';
import { completionsWireSchema } from '../../../../api/chat/completions-body.ts';
import { chatBodySchema } from '../../../../shared/contracts/chat-request.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';

const MESSAGE = { role: 'user', content: 'Hi' };
const bodyOf = (more: object = {}) => ({ messages: [MESSAGE], ...more });
const parseText = (json: string) => parseChatBody(JSON.parse(json));

/** `<code> <param>: <message>` of the refusal; undefined when the body is accepted. */
function refusalOf(body: unknown): string | undefined {
  try {
    parseChatBody(body);
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError) return `${error.code} ${String(error.param)}: ${error.message}`;
    throw error;
  }
}

const saying = (content: unknown) => ({ messages: [{ role: 'user', content }] });

const SEND_THERE = 'is read by `POST /chat/completions` only; send the request there, or leave it out.';

describe('a chat body', () => {
  it('a chat body gets the defaults of the interface', () => {
    expect(parseChatBody(bodyOf()).request).toEqual({
      messages: [MESSAGE],
      maxTokens: 4_096,
      fitsTokens: true,
      jsonMode: false,
    });
  });

  it('a chat body keeps every field of the interface', () => {
    const { request, ignoredFields } = parseChatBody(
      bodyOf({
        model: 'oloid',
        max_tokens: 1,
        entity_id: 'e',
        subject: 's',
        grade: '',
        metadata: { a: [1] },
        json_mode: true,
      }),
    );
    expect(request).toEqual({
      messages: [MESSAGE],
      model: 'oloid',
      maxTokens: 1,
      entityId: 'e',
      subject: 's',
      grade: '',
      metadataJson: '{"a":[1]}',
      jsonMode: true,
    });
    expect(ignoredFields).toEqual([]);
  });

  it.each([
    ['null', null, /^invalid_request undefined: The request body must be of type object\.$/],
    ['a list', [], /^invalid_request undefined: The request body must be of type object\.$/],
    ['a string', 'hi', /^invalid_request undefined: The request body/],
    ['an empty object', {}, /^invalid_request messages: `messages` is required\.$/],
    [
      'messages as an object',
      { messages: { 0: MESSAGE, length: 1 } },
      /^invalid_request messages: .* must be an array/,
    ],
    ['no messages', { messages: [] }, /^invalid_request messages: .* at least 1/],
    ['101 messages', { messages: Array(101).fill(MESSAGE) }, /^too_many_messages messages: .* 100/],
    ['null as a message', { messages: [MESSAGE, null] }, /^invalid_request messages\[1\]: .* object/],
    ['a list as a message', { messages: [[MESSAGE]] }, /^invalid_request messages\[0\]: .* object/],
    [
      'an unknown role',
      { messages: [{ role: 'tool', content: 'x' }] },
      /^invalid_request messages\[0\]\.role: .*user, assistant, system/,
    ],
    ['a role in capitals', { messages: [{ role: 'User', content: 'x' }] }, /^invalid_request messages\[0\]\.role:/],
    ['no role', { messages: [{ content: 'x' }] }, /^invalid_request messages\[0\]\.role: .*required/],
    ['no content', { messages: [MESSAGE, { role: 'user' }] }, /^invalid_request messages\[1\]\.content: .*required/],
    ['empty content', saying(''), /^invalid_request messages\[0\]\.content: .*empty/],
    ['null as content', saying(null), /^invalid_request messages\[0\]\.content: .*string/],
    ['a list as content', saying(['x']), /^invalid_request messages\[0\]\.content: .*string/],
    ['16,001 characters', saying('a'.repeat(16_001)), /^message_too_long messages\[0\]\.content: .*16000/],
    ['16,001 emoji', saying('😀'.repeat(16_001)), /^message_too_long messages\[0\]\.content: .*code points/],
    ['a million characters', saying('a'.repeat(1_000_000)), /^message_too_long/],
    ['an unknown model', bodyOf({ model: 'gpt-4' }), /^invalid_request model: .*mobius, oloid/],
    ['null as model', bodyOf({ model: null }), /^invalid_request model:/],
    ['max_tokens as a string', bodyOf({ max_tokens: '5' }), /^invalid_request max_tokens: .*number/],
    ['a float', bodyOf({ max_tokens: 1.5 }), /^invalid_request max_tokens: .*integer/],
    ['0 tokens', bodyOf({ max_tokens: 0 }), /^invalid_request max_tokens: .* 1\./],
    ['16,385 tokens', bodyOf({ max_tokens: 16_385 }), /^invalid_request max_tokens: .* 16384\./],
    ['a number beyond all', bodyOf({ max_tokens: 1e20 }), /^invalid_request max_tokens: .*between 1 and 16384\./],
    [
      'infinite tokens',
      JSON.parse('{"messages":[{"role":"user","content":"x"}],"max_tokens":1e999}'),
      /^invalid_request max_tokens: .*between 1 and 16384\./,
    ],
    ['a number as entity_id', bodyOf({ entity_id: 5 }), /^invalid_request entity_id: .*string/],
    ['an object as entity_id', bodyOf({ entity_id: { $gt: '' } }), /^invalid_request entity_id: .*string/],
    ['an empty entity_id', bodyOf({ entity_id: '' }), /^invalid_request entity_id: .*empty/],
    ['257 characters of entity_id', bodyOf({ entity_id: 'e'.repeat(257) }), /^invalid_request entity_id: .*256/],
    ['null as subject', bodyOf({ subject: null }), /^invalid_request subject: .*string/],
    ['a number as grade', bodyOf({ grade: 7 }), /^invalid_request grade: .*string/],
    ['json_mode as a string', bodyOf({ json_mode: 'true' }), /^invalid_request json_mode: .*boolean/],
    ['json_mode as a number', bodyOf({ json_mode: 1 }), /^invalid_request json_mode: .*boolean/],
    ['a list as metadata', bodyOf({ metadata: [] }), /^invalid_request metadata: .*object/],
    ['null as metadata', bodyOf({ metadata: null }), /^invalid_request metadata: .*object/],
  ])('a chat body with %s is refused by field and rule', (_what, body: unknown, refusal) => {
    expect(refusalOf(body)).toMatch(refusal);
  });

  it.each([
    ['100 messages', { messages: Array(100).fill(MESSAGE) }],
    ['16,000 emoji', saying('😀'.repeat(16_000))],
    ['16,000 lone surrogates', saying('\ud800'.repeat(16_000))],
    ['a NUL', saying('\0')],
    ['only spaces', saying('   ')],
    ['256 emoji as entity_id', bodyOf({ entity_id: '🦉'.repeat(256) })],
    ['16,384 tokens', bodyOf({ max_tokens: 16_384 })],
  ])('a chat body with %s is accepted', (_what, body) => {
    expect(refusalOf(body)).toBeUndefined();
  });

  it('names what it ignores, in the body and in messages, and does not pass it on', () => {
    const messages = [
      { ...MESSAGE, name: 'Ann' },
      { ...MESSAGE, name: 'Bo', tool_calls: [] },
    ];

    const { request, ignoredFields } = parseChatBody({ messages, temperature: 2, toString: 1 });

    expect(ignoredFields).toEqual(['temperature', 'toString', 'messages[].name', 'messages[].tool_calls']);
    expect(request.messages).toEqual([MESSAGE, MESSAGE]);
  });

  it.each([
    [{ stream: true }, 'stream', 'for a stream use `POST /chat/stream` or `POST /chat/completions`.'],
    [{ tools: [{}] }, 'tools', SEND_THERE],
    [{ tool_choice: 'required' }, 'tool_choice', SEND_THERE],
    [{ functions: [{}] }, 'functions', SEND_THERE],
    [{ n: 2 }, 'n', '`n` must be 1: a request has one answer'],
    [{ response_format: { type: 'json_object' } }, 'response_format', 'here `json_mode` asks for a JSON object.'],
    [{ response_format: 'json' }, 'response_format', '`json_mode`'],
    [{ max_completion_tokens: 5 }, 'max_completion_tokens', 'here it is `max_tokens`.'],
    [{ stop: ['a'] }, 'stop', '`POST /chat/completions` only'],
    [{ logprobs: true }, 'logprobs', SEND_THERE],
    [{ top_logprobs: 3 }, 'top_logprobs', SEND_THERE],
    [{ logit_bias: { 50256: -100 } }, 'logit_bias', SEND_THERE],
    [{ prediction: { type: 'content', content: 'x' } }, 'prediction', SEND_THERE],
    [{ web_search_options: {} }, 'web_search_options', SEND_THERE],
    [{ top_k: 40 }, 'top_k', SEND_THERE],
    [{ guided_json: {} }, 'guided_json', SEND_THERE],
  ])('is refused with %j, which it would lose, and told what to do', (fields, param, say) => {
    const refusal = refusalOf(bodyOf(fields));

    expect(refusal).toMatch(new RegExp(`^invalid_request ${param}: `));
    expect(refusal).toContain(say);
  });

  it('may have each such field with a value that asks for nothing', () => {
    const nothing = {
      stream: false,
      tools: [],
      tool_choice: 'auto',
      function_call: 'none',
      audio: null,
      n: 1,
      response_format: { type: 'text' },
      stop: ['', null],
      logprobs: false,
      top_logprobs: 0,
      logit_bias: {},
      top_k: -1,
    };
    expect(parseChatBody(bodyOf(nothing)).ignoredFields).toEqual(Object.keys(nothing));
    const nulls = Object.fromEntries(Object.keys(UNSERVED_WITHOUT_STREAM).map((name) => [name, null]));
    expect(refusalOf(bodyOf(nulls))).toBeUndefined();
  });

  it('may ask for a stream where the answer is one', () => {
    expect(() => parseChatStreamBody(bodyOf({ stream: true }))).not.toThrow();
    expect(() => parseChatStreamBody(bodyOf({ tools: [{}] }))).toThrow(SEND_THERE);
  });

  it('takes no field from a prototype that the caller sends', () => {
    expect(() => parseText('{"__proto__":{"messages":[{"role":"user","content":"x"}]}}')).toThrow(
      '`messages` is required',
    );
    expect(() => parseText('{"messages":[{"__proto__":{"role":"user","content":"x"}}]}')).toThrow(
      '`messages[0].role` is required',
    );
    const { request, ignoredFields } = parseText(
      '{"messages":[{"role":"user","content":"x"}],"__proto__":{"model":"oloid"}}',
    );
    expect(request.model).toBeUndefined();
    expect(ignoredFields).toEqual(['__proto__']);
  });

  it('is accepted or refused with a ServiceError, whatever JSON it is', () => {
    const nearly = fc.record(
      {
        messages: fc.oneof(
          fc.jsonValue(),
          fc.array(fc.record({ role: fc.constantFrom('user', 'x'), content: fc.jsonValue() })),
        ),
        model: fc.jsonValue(),
        max_tokens: fc.jsonValue(),
        entity_id: fc.jsonValue(),
        metadata: fc.jsonValue(),
        json_mode: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), nearly), (body) => {
        expect(refusalOf(JSON.parse(JSON.stringify(body))) ?? 'accepted').toMatch(/^(accepted|[a-z_]+ \S+: .+\.$)/);
      }),
      { numRuns: 500 },
    );
  });

  it('is looked at no further than its limits: 50,000 messages or fields cost no second', () => {
    const fields = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${String(index)}`, 1]));
    const start = performance.now();

    expect(refusalOf({ messages: Array(50_000).fill(MESSAGE) })).toMatch(/^too_many_messages/);
    expect(refusalOf(bodyOf({ metadata: fields }))).toMatch(/^invalid_request metadata: .*16384 bytes/);
    expect(refusalOf(bodyOf(fields))).toBeUndefined();
    expect(refusalOf({ messages: [{ ...MESSAGE, ...fields }] })).toBeUndefined();

    expect(performance.now() - start).toBeLessThan(10_000);
  });
});

describe.each([
  ['the chat routes', chatBodySchema],
  ['completions', completionsWireSchema],
])('a plain body of %s', (_name, schema) => {
  const known = new Set(Object.keys((schema.describe() as { keys: object }).keys));
  const near = (limit: number) => fc.constantFrom(0, 1, limit - 1, limit, limit + 1);
  const odd = fc.oneof(fc.constantFrom(0.5, -1, 1e300, '5', null, 'Mobius', '', true), fc.jsonValue());
  const mostly = (values: fc.Arbitrary<unknown>) =>
    fc.oneof({ weight: 15, arbitrary: values }, { weight: 1, arbitrary: odd });
  const text = fc.oneof(
    fc.string(),
    near(16_000).map((length) => 'a'.repeat(length)),
    near(16_000).map((length) => '\u{1f600}'.repeat(length)),
    fc.constantFrom('\ud800', '\u0000', ' '),
  );
  const message = fc.oneof(
    { weight: 20, arbitrary: fc.record({ role: fc.constantFrom('user', 'system', 'assistant'), content: text }) },
    { weight: 1, arbitrary: fc.record({ role: fc.jsonValue(), content: fc.jsonValue() }, { requiredKeys: [] }) },
    { weight: 1, arbitrary: fc.jsonValue() },
  );
  const messages = fc.oneof(
    { weight: 9, arbitrary: fc.array(message, { maxLength: 4 }) },
    { weight: 1, arbitrary: near(100).map((length) => Array.from({ length }, () => MESSAGE)) },
  );
  const body = fc.record(
    {
      messages: mostly(messages),
      model: mostly(fc.constantFrom('mobius', 'oloid')),
      max_tokens: mostly(near(16_384)),
      stream: mostly(fc.boolean()),
      temperature: mostly(fc.double({ min: -0.1, max: 2.1, noNaN: true })),
      top_p: mostly(fc.double({ min: -0.1, max: 1.1, noNaN: true })),
      unknown: fc.jsonValue(),
    },
    { requiredKeys: ['messages'] },
  );

  it('is one that the schema accepts as it is', () => {
    let plain = 0;
    fc.assert(
      fc.property(fc.oneof({ weight: 9, arbitrary: body }, { weight: 1, arbitrary: fc.jsonValue() }), (input) => {
        // As it comes from the wire.
        const sent: unknown = JSON.parse(JSON.stringify(input));
        if (!isPlainBody(sent, known)) return;
        plain += 1;
        expect(schema.validate(sent, { convert: false })).toEqual({ value: sent });
      }),
      { seed: 63, numRuns: 6_000 },
    );
    expect(plain).toBeGreaterThan(200);
  });

  it.each([{}, { model: 'oloid', max_tokens: 5, stream: true }, { temperature: 0.7, top_p: 1 }])(
    'is what most callers send: %j',
    (fields) => {
      expect(isPlainBody(bodyOf(fields), known)).toBe(true);
    },
  );

  it.each([
    ['messages', []],
    ['model', null],
    ['max_tokens', 16_385],
    ['json_mode', true],
    ['metadata', {}],
  ])('leaves %s of %j to the schema', (name, value) => {
    expect(isPlainBody(bodyOf({ [name]: value }), known)).toBe(false);
  });
});
