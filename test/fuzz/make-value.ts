import type { Chance } from '../support/chance.ts';
import { follow } from './read-document.ts';
import type { Schema, ServedDocument } from './read-document.ts';
import { poisoned, strangeValue, STRANGE_TEXTS } from './strange-values.ts';

/** How often a part of a value breaks its schema, from 0 (a valid value) to 1. */
export interface ValueOptions {
  wrongness: number;
}

const LONG_ITEMS_MAX = 12;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** What the patterns of the document are tried with. */
const WORDS = ['chat', 'chat.stream', '1', '12', '007', 'abc', 'whsec_AAAA', '1d:1', 'desc'];
const ALPHABETS = ['abc XYZ', '0123456789', 'äöüß', '日本語', '😀🎉', 'a\u0301'];

function text(chance: Chance, length: number): string {
  const letters = Array.from(chance.pick(ALPHABETS));
  return Array.from({ length }, () => chance.pick(letters)).join('');
}

/** A text of the pattern; one that is not known to fit is a text like any other. */
function matching(chance: Chance, pattern: string): string {
  const prefix = /^\^(\w+)_\[0-9A-Za-z\]\{24\}/.exec(pattern)?.[1];
  if (prefix !== undefined)
    return `${prefix}_${Array.from({ length: 24 }, () => BASE62.charAt(chance.below(BASE62.length))).join('')}`;
  const expression = new RegExp(pattern, 'u');
  const fitting = [...WORDS, ...STRANGE_TEXTS].filter((word) => word !== '' && expression.test(word));
  return fitting.length === 0 ? 'x' : chance.pick(fitting);
}

function makeText(chance: Chance, { minLength = 0, maxLength = 40, pattern, format }: Schema): string {
  if (format === 'uri')
    return chance.pick(['https://example.com/', 'http://localhost:8080/a?b=c', 'https://a.test/%20']);
  if (pattern !== undefined) return matching(chance, pattern);
  // The whole length only now and then: 16,000 characters take their time.
  const longest = chance.is(0.03) ? maxLength : Math.min(maxLength, minLength + 40);
  return text(chance, chance.pick([minLength, longest, minLength + chance.below(longest - minLength + 1)]));
}

function makeNumber(chance: Chance, { type, minimum = -1_000, maximum = 1_000 }: Schema): number {
  const isWhole = type === 'integer' || (Array.isArray(type) && type.includes('integer'));
  const between = minimum + chance.next() * (maximum - minimum);
  return chance.pick([minimum, maximum, isWhole ? Math.floor(between) : Number(between.toFixed(3))]);
}

/** A value just outside of what the schema allows; undefined: it has no edge. */
function beyond(chance: Chance, schema: Schema): unknown {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
  const options: unknown[] = [
    ...(minimum === undefined ? [] : [minimum - 1]),
    ...(maximum === undefined ? [] : [maximum + 1, maximum + 0.5]),
    ...(minLength === undefined || minLength === 0 ? [] : ['x'.repeat(minLength - 1)]),
    ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1), '😀'.repeat(maxLength + 1)]),
    ...(minItems === undefined || minItems === 0 ? [] : [[]]),
    ...(maxItems === undefined ? [] : [Array.from({ length: maxItems + 1 }, () => ({}))]),
  ];
  return options.length === 0 ? undefined : chance.pick(options);
}

/** Makes values of a document's schemas, valid ones or such as nearly are. Values are JSON. */
export function createValueMaker(document: ServedDocument, chance: Chance) {
  function makeArray(
    { items = {}, minItems = 0, maxItems = LONG_ITEMS_MAX, uniqueItems }: Schema,
    options: ValueOptions,
  ) {
    const most = Math.min(maxItems, minItems + 3);
    const made = Array.from({ length: chance.pick([minItems, most]) }, () => make(items, options));
    if (uniqueItems !== true || chance.is(options.wrongness)) return made;
    return [...new Map(made.map((item) => [JSON.stringify(item), item])).values()];
  }

  function makeObject(schema: Schema, options: ValueOptions): unknown {
    const { properties = {}, required = [], oneOf, additionalProperties } = schema;
    // `oneOf` beside properties says which of them exclude each other.
    const chosen = oneOf === undefined ? [] : (chance.pick(oneOf).required ?? []);
    const excluded = oneOf?.flatMap((choice) => choice.required ?? []).filter((name) => !chosen.includes(name)) ?? [];
    const entries = Object.entries(properties).flatMap(([name, property]) => {
      const must = required.includes(name) || chosen.includes(name);
      const isThere = must ? !chance.is(options.wrongness / 2) : !excluded.includes(name) && chance.is(0.4);
      return isThere ? [[name, make(property, options)] as const] : [];
    });
    const mayHaveMore = additionalProperties !== undefined && additionalProperties !== false;
    if (mayHaveMore ? chance.is(0.2) : chance.is(options.wrongness))
      entries.push([chance.pick(['extra', 'Messages', 'x-1', '0', '😀']), strangeValue(chance)]);
    if (chance.is(options.wrongness / 4))
      return Object.assign(poisoned('__proto__') as object, Object.fromEntries(entries));
    return Object.fromEntries(entries);
  }

  function makeOf(type: string | undefined, schema: Schema, options: ValueOptions): unknown {
    switch (type) {
      case 'null':
        return null;
      case 'boolean':
        return chance.is(0.5);
      case 'integer':
      case 'number':
        return makeNumber(chance, schema);
      case 'string':
        return makeText(chance, schema);
      case 'array':
        return makeArray(schema, options);
      case 'object':
        return makeObject(schema, options);
      default:
        return strangeValue(chance);
    }
  }

  function make(given: Schema, options: ValueOptions): unknown {
    const schema = follow(document, given);
    if (chance.is(options.wrongness)) return chance.is(0.5) ? strangeValue(chance) : (beyond(chance, schema) ?? null);
    if (schema.const !== undefined) return schema.const;
    if (schema.enum !== undefined) return chance.pick(schema.enum);
    const choices = schema.anyOf ?? (schema.properties === undefined ? schema.oneOf : undefined);
    if (choices !== undefined) return make(chance.pick(choices), options);
    const { type } = schema;
    return makeOf(Array.isArray(type) ? chance.pick(type) : type, schema, options);
  }

  return { make };
}

export type ValueMaker = ReturnType<typeof createValueMaker>;
