import { describe, expect, it } from '@jest/globals';

import { faultOf } from '../../../../workers/pipeline/json-answer.ts';

describe('an answer in json_mode', () => {
  it.each(['{}', '{"a":[1,2]}', ' \n{"a":null}\n'])('an answer in json_mode may be the object %j', (text) => {
    expect(faultOf(text, undefined)).toBeUndefined();
  });

  it.each(['', 'null', '1', '"text"', '[1]', '{"a":1', '{"a":1} trailing', '```json\n{}\n```'])(
    'an answer in json_mode may not be %j',
    (text) => {
      expect(faultOf(text, undefined)).toBe('The model gave no valid JSON object');
    },
  );
});

const schemaOf = (schema: Record<string, unknown>) => ({ name: 'answer', strict: false, schema });

describe('an answer with a schema', () => {
  const DOG = schemaOf({
    type: 'object',
    properties: { name: { type: 'string', pattern: '^[A-Z]' }, tags: { type: 'array', items: { enum: ['a', 'b'] } } },
    required: ['name', 'tags'],
    additionalProperties: false,
  });

  it('may be what fits it', () => {
    expect(faultOf('{"name":"Rex","tags":["a"]}', DOG)).toBeUndefined();
  });

  it.each([
    ['{"name":"Rex"}', 'required property "tags"'],
    ['{"name":1,"tags":[]}', '#/name: Instance type "number"'],
    ['{"name":"rex","tags":[]}', '#/name: String does not match pattern'],
    ['{"name":"Rex","tags":["a","c"]}', '#/tags/1'],
    ['{"name":"Rex","tags":[],"age":3}', '"age"'],
    ['[]', 'no valid JSON object'],
  ])('may not be %s', (text, say) => {
    expect(faultOf(text, DOG)).toContain(say);
  });

  const alternatives = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [
      `d${index}`,
      { anyOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] },
    ]),
  );

  it.each([
    ['alternatives of alternatives', { $ref: '#/$defs/d0', $defs: { ...alternatives, d40: { type: 'string' } } }],
    ['patterns that try everything', { properties: { a: { pattern: '^(a+)+$' } } }],
    ['references to themselves', { $ref: '#' }],
  ])('stops no worker: %s', (_what, schema) => {
    const begun = performance.now();

    expect(() => faultOf(JSON.stringify({ a: `${'a'.repeat(60)}!` }), schemaOf(schema))).toThrow(
      expect.objectContaining({ code: 'invalid_request', param: 'response_format.json_schema.schema' }),
    );
    expect(performance.now() - begun).toBeLessThan(2_000);
  });
});
