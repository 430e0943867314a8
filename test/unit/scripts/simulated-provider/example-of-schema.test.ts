import { describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { exampleOf } from '../../../../scripts/simulated-provider/example-of-schema.ts';

const ajv = addFormats.default(new Ajv2020({ strict: false }));

const NODE = {
  type: 'object',
  properties: { name: { type: 'string' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
  required: ['name', 'next'],
  additionalProperties: false,
};

describe('exampleOf', () => {
  it.each<[string, object]>([
    ['an object with all its properties', { type: 'object', properties: { a: { type: 'string' } } }],
    ['an enum', { enum: ['a', 'b'] }],
    ['a constant', { const: 7 }],
    ['numbers within bounds', { type: 'array', prefixItems: [{ type: 'number', minimum: 2.5, maximum: 3 }] }],
    ['a number above an exclusive bound', { type: 'integer', exclusiveMinimum: 3, exclusiveMaximum: 5 }],
    ['a negative number', { type: 'number', maximum: -4 }],
    ['a multiple', { type: 'integer', minimum: 11, multipleOf: 5 }],
    ['as many items as asked for', { type: 'array', items: { type: 'boolean' }, minItems: 3 }],
    ['an empty list', { type: 'array', items: { type: 'string' }, maxItems: 0 }],
    ['a text of a length', { type: 'string', minLength: 9, maxLength: 9 }],
    ['formats', { type: 'array', prefixItems: ['date-time', 'email', 'uuid', 'uri'].map((format) => ({ format })) }],
    ['a pattern', { type: 'string', pattern: '^[A-Z]{2}-\\d{3}$' }],
    ['a type or null', { type: ['null', 'integer'] }],
    ['an alternative', { anyOf: [{ type: 'null' }, { type: 'integer' }] }],
    [
      'all of several',
      {
        allOf: [
          { properties: { a: { const: 1 } }, required: ['a'] },
          { properties: { b: {} }, required: ['b'] },
        ],
      },
    ],
    ['a schema that contains itself', { $ref: '#/$defs/node', $defs: { node: NODE } }],
    ['anything', {}],
  ])('makes %s', (_, schema) => {
    const example = exampleOf(schema);

    expect([ajv.validate(schema, example), ajv.errorsText()]).toEqual([true, 'No errors']);
    expect(exampleOf(schema)).toEqual(example);
  });
});
