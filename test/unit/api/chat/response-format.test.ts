import { describe, expect, it } from '@jest/globals';

import { parseCompletionsBody } from '../../../../api/chat/completions-body.ts';

type Fields = Record<string, unknown>;
const objectOf = (properties: Fields, others: Fields = {}) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...others,
});
const TEXT = { type: 'string' };

function parse(format: unknown): unknown {
  const body = { messages: [{ role: 'user', content: 'Hi' }] };
  return parseCompletionsBody({ ...body, response_format: { type: 'json_schema', json_schema: format } }).request
    .schema;
}
const parseStrict = (schema: unknown) => parse({ name: 'answer', strict: true, schema });
const nested = (levels: number): Fields => (levels === 0 ? TEXT : objectOf({ in: nested(levels - 1) }));
const DEEP = JSON.parse('{"not":'.repeat(70) + '{}' + '}'.repeat(70)) as object;
const poisoned = (name: string) => JSON.parse(`{"properties":{"${name}":{"__proto__":{}}}}`) as object;
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, TEXT]));

describe('a schema of response_format', () => {
  it('is taken as sent', () => {
    const schema = objectOf(
      { name: TEXT, steps: { type: 'array', items: { $ref: '#/$defs/step' } } },
      {
        $defs: {
          step: objectOf({ next: { anyOf: [{ $ref: '#' }, { type: 'null' }] }, kind: { enum: ['a', 1, null] } }),
        },
      },
    );

    expect(parse({ name: 'my-answer_1', description: 'It', strict: true, schema })).toEqual({
      name: 'my-answer_1',
      description: 'It',
      strict: true,
      schema,
    });
    expect(parse({ name: 'a', description: null, strict: null, schema })).toEqual({ name: 'a', strict: false, schema });
  });

  it('may have any keyword where it is not strict', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string', oneOf: [{ minLength: 1 }, true] }, b: { items: [{}, { not: {} }] } },
      dependencies: { a: ['b'], b: { required: ['a'] } },
      dependentRequired: { a: [] },
      'x-own': { type: 5, deep: { $ref: '#/nowhere' } },
      patternProperties: { '^b': { default: DEEP } },
    };

    expect(parse({ name: 'a', schema })).toMatchObject({ strict: false, schema });
  });

  it('may have the names of keywords for its properties', () => {
    expect(parseStrict(objectOf({ $ref: TEXT, pattern: { type: 'number' }, allOf: TEXT }))).toBeDefined();
  });

  it.each([
    ['no name', { schema: {} }, '', 'name', '1 to 64 letters'],
    ['an odd name', { name: 'a b', schema: {} }, '', 'name', '1 to 64 letters'],
    ['no schema', { name: 'a' }, '', 'schema', 'must be a JSON schema'],
    ['a list', { name: 'a', schema: { type: 'array' } }, 'schema', 'type', 'an answer is an object'],
    ['no type', { name: 'a', schema: {} }, 'schema', 'type', 'an answer is an object'],
    ['a list of types', { name: 'a', schema: { type: ['object'] } }, 'schema', 'type', 'an answer is an object'],
    ['a word for strict', { name: 'a', schema: {}, strict: 'yes' }, '', 'strict', 'must be a boolean'],
  ])('is refused with %s', (_what, format, under, field, say) => {
    const param = ['response_format', 'json_schema', under, field].filter((part) => part !== '').join('.');
    expect(() => parse(format)).toThrow(expect.objectContaining({ param, message: expect.stringContaining(say) }));
  });

  it.each([
    ['without all that is required', objectOf({ a: TEXT }, { required: [] }), '.required', '`a` is missing'],
    ['with a requirement of nothing', objectOf({ a: TEXT }, { required: ['a', 'b'] }), '.required', 'no property'],
    [
      'that lets others in',
      objectOf({ a: objectOf({}, { additionalProperties: true }) }),
      '.properties.a.additionalProperties',
      'false',
    ],
    [
      'with a keyword',
      objectOf({ a: { type: 'array', items: { allOf: [{}] } } }),
      '.properties.a.items.allOf',
      'not supported',
    ],
    ['without a type', objectOf({ a: {} }), '.properties.a', 'must have a `type`'],
    ['of an odd type', objectOf({ a: { type: 'text' } }), '.properties.a.type', 'must be one of string'],
    ['with a list of anything', objectOf({ a: { type: 'array' } }), '.properties.a', '`items`'],
    ['with no alternative', objectOf({ a: { anyOf: [] } }), '.properties.a.anyOf', 'list of schemas'],
    ['with an alternative on top', objectOf({}, { anyOf: [TEXT] }), '.anyOf', 'root'],
    ['of eleven levels', nested(11), '.properties.in'.repeat(11), '10 levels'],
    ['with too many properties', objectOf(many(5_001)), '', '5,000 properties'],
    [
      'with too many values',
      objectOf({ a: { enum: Array.from({ length: 1_001 }, (_, index) => index) } }),
      '',
      '1,000 values',
    ],
    ['with too long names', objectOf({ a: { const: 'x'.repeat(120_001) } }), '', '120,000 characters'],
  ])('is refused, if strict, %s', (_what, schema, path, say) => {
    const param = `response_format.json_schema.schema${path}`;
    expect(() => parseStrict(schema)).toThrow(
      expect.objectContaining({ code: 'invalid_request', param, message: expect.stringContaining(say) }),
    );
  });

  it.each([
    ['a reference to elsewhere', { properties: { a: { $ref: 'https://elsewhere.example/a' } } }, '.properties.a.$ref'],
    ['a reference to nothing', { properties: { a: { $ref: '#/$defs/a' } } }, '.properties.a.$ref'],
    [
      'a reference to a value',
      { properties: { a: { enum: [{}] }, b: { $ref: '#/properties/a/enum/0' } } },
      '.properties.b.$ref',
    ],
    [
      'a reference to a constant',
      { properties: { a: { const: {} }, b: { $ref: '#/properties/a/const' } } },
      '.properties.b.$ref',
    ],
    ['a reference to a map', { properties: { a: {} }, $defs: { b: { $ref: '#/properties' } } }, '.$defs.b.$ref'],
    [
      'a reference inside another $id',
      { $defs: { a: { $id: 'a', properties: { b: { $ref: '#/$defs/c' } } }, c: {} } },
      '.$defs.a.properties.b.$ref',
    ],
    ['an $id inside another', { $defs: { a: { $id: 'a', not: { $id: 'b' } } } }, '.$defs.a.not.$id'],
    ['an $id that its root does not fit', { $id: 'urn:a', $defs: { a: { $id: 'b' } } }, '.$defs.a.$id'],
    ['an $id twice', { $defs: { a: { $id: 'a' }, b: { $id: 'a' } } }, '.$defs.a.$id'],
    ['what is no pattern', { properties: { a: { pattern: '(' } } }, '.properties.a.pattern'],
    ...Object.entries({
      type: 'zzz',
      required: 'a',
      properties: [],
      enum: [],
      anyOf: [],
      oneOf: {},
      items: 'a',
      not: 5,
      additionalProperties: 5,
      patternProperties: { '[': {} },
      dependentRequired: { a: 'b' },
      minimum: '1',
      minProperties: -1,
      multipleOf: 0,
      uniqueItems: 1,
      $id: 'http://',
      $schema: 'zzz',
      $dynamicRef: '#x',
    }).map(([name, value]): [string, object, string] => [
      `a wrong ${name}`,
      { properties: { a: { [name]: value } } },
      `.properties.a.${name}`,
    ]),
    [
      'a wrong part that only a reference reaches',
      { 'x-a': { enum: 1 }, allOf: [{ $ref: '#/x-a' }] },
      '.allOf[0].$ref.enum',
    ],
    ['a circle', { properties: { a: { $ref: '#/properties/a' } } }, '.properties.a.$ref'],
    [
      'a wide circle',
      { properties: { a: { allOf: [{ not: { $ref: '#/properties/a' } }] } } },
      '.properties.a.allOf[0].not.$ref',
    ],
    ['a poisoned name', JSON.parse('{"properties":{"__proto__":{}}}') as object, '.properties'],
    ...['default', 'enum'].flatMap((name): [string, object, string][] => [
      [`a poisoned name in ${name}`, poisoned(name), `.properties.${name}`],
      [`too many levels in ${name}`, { properties: { [name]: DEEP } }, ''],
    ]),
    ['too many bytes', { description: 'x'.repeat(256 * 1024) }, ''],
    ['too many levels', { properties: { a: DEEP } }, ''],
  ])('is refused with %s, strict or not', (_what, schema, path) => {
    const param = `response_format.json_schema.schema${path}`;
    expect(() => parse({ name: 'a', schema })).toThrow(expect.objectContaining({ code: 'invalid_request', param }));
  });
});
