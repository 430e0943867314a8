import type Joi from 'joi';
import joiToJson from 'joi-to-json';

import { codePointLimitOf } from '../../shared/contracts/chat-request.ts';
import type { JsonSchema } from '../contract/json-schema.ts';

/** The package's types declare a `parse` function, but its export is that function itself. */
const convert = joiToJson as unknown as typeof joiToJson.parse;

interface Rule {
  name: string;
  args?: Record<string, unknown>;
}

/** The result of `describe()`, as far as the schemas here use it. */
interface Description {
  type: string;
  flags?: { only?: boolean; presence?: string; description?: string; default?: unknown };
  rules?: Rule[];
  allow?: unknown[];
  metas?: Meta[];
  keys?: Record<string, Description>;
  items?: Description[];
  matches?: { schema?: Description }[];
}

/** What a schema may declare for the document with `.meta()`. */
interface Meta {
  /** The value that applies if the field is omitted. */
  default?: unknown;
  /** A custom rule in words, if JSON Schema cannot express it. */
  rule?: string;
  /** The type of value that the text of a query parameter stands for. */
  reads?: Description;
  format?: string;
}

/** Anything not listed here is an error, because it would silently be missing from the document. */
const KNOWN = new Set(['type', 'flags', 'rules', 'allow', 'metas', 'keys', 'items', 'matches', 'dependencies']);
const KNOWN_BESIDE = new Set(['preferences', 'examples']);
const KNOWN_RULES: Readonly<Record<string, readonly string[]>> = {
  string: ['min', 'max', 'pattern'],
  number: ['integer', 'min', 'max', 'greater'],
  array: ['min', 'max', 'unique'],
  object: ['max'],
};

function assertKnown(node: Description): void {
  const strange = Object.keys(node).find((name) => !KNOWN.has(name) && !KNOWN_BESIDE.has(name));
  if (strange !== undefined) throw new Error(`The document cannot tell of joi's ${strange}; add it to from-joi.ts.`);
  const rules = KNOWN_RULES[node.type] ?? [];
  const rule = node.rules?.find(({ name }) => name !== 'custom' && !rules.includes(name));
  if (rule !== undefined) throw new Error(`The document cannot tell of joi's ${node.type}.${rule.name}().`);
  const pattern = node.rules?.find(({ name }) => name === 'pattern')?.args?.['regex'];
  if (typeof pattern === 'string' && !pattern.endsWith('/')) throw new Error('JSON Schema has no flags for patterns.');
}

function metaOf({ metas = [] }: Description): Meta {
  return Object.assign({}, ...metas) as Meta;
}

/** Code points become a `max`, because JSON Schema counts them too; other custom rules must be described in words. */
function plainRules(node: Description): Rule[] {
  return (node.rules ?? []).map((rule) => {
    if (rule.name !== 'custom') return rule;
    const limit = codePointLimitOf(rule.args?.['method']);
    if (limit !== undefined) return { name: 'max', args: { limit } };
    if (metaOf(node).rule === undefined) throw new Error('A custom rule needs .meta({ rule }) for the document.');
    return rule;
  });
}

/** What joi refuses by default: empty strings and unsafe numbers. */
function silentRules({ type, flags, allow = [] }: Description, rules: readonly Rule[]): Rule[] {
  const has = (name: string) => rules.some((rule) => rule.name === name);
  if (flags?.only === true) return [];
  const limit = (name: string, value: number): Rule[] => (has(name) ? [] : [{ name, args: { limit: value } }]);
  if (type === 'string') return allow.includes('') ? [] : limit('min', 1);
  if (type === 'number')
    return [...(has('greater') ? [] : limit('min', Number.MIN_SAFE_INTEGER)), ...limit('max', Number.MAX_SAFE_INTEGER)];
  return [];
}

const NULL: Description = { type: 'any', flags: { only: true }, allow: [null] };

/** Rewrites a description into a form that joi-to-json translates without loss. */
function inPlainWords(given: Description): Description {
  assertKnown(given);
  const { default: value, rule, reads } = metaOf(given);
  const node = reads === undefined ? given : { ...reads, flags: { ...reads.flags, ...given.flags } };
  const { flags, allow, keys, items, matches, ...others } = node;
  const rules = plainRules(node);
  const description = [flags?.description, rule].filter((part) => part !== undefined).join(' ');
  // joi-to-json would turn a nullable alternative into one that must be null.
  const isOptionalChoice = matches !== undefined && allow?.includes(null) === true;
  return {
    ...others,
    flags: {
      ...flags,
      ...(description === '' ? {} : { description }),
      ...(value === undefined ? {} : { default: value }),
    },
    rules: [...rules, ...silentRules(node, rules)],
    ...(allow === undefined || isOptionalChoice ? {} : { allow }),
    ...(keys === undefined
      ? {}
      : { keys: Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, inPlainWords(key)])) }),
    ...(items === undefined ? {} : { items: items.map(inPlainWords) }),
    ...(matches === undefined ? {} : { matches: choices(matches, isOptionalChoice) }),
  };
}

function choices(matches: NonNullable<Description['matches']>, orNull: boolean): { schema: Description }[] {
  const schemas = matches.map(({ schema }) => {
    if (schema === undefined) throw new Error('The document cannot tell of conditional joi schemas.');
    return inPlainWords(schema);
  });
  return [...schemas, ...(orNull ? [NULL] : [])].map((schema) => ({ schema }));
}

/** Exactly one of the peers; joi-to-json's own translation says the same at greater length. */
function exactlyOne(schema: { oneOf?: object[] }, { peers }: { peers: string[] }): void {
  schema.oneOf = peers.map((peer) => ({ required: [peer] }));
}

/**
 * The JSON Schema of the values that a joi schema accepts, as strictly as `checkAgainst` applies it: nothing is
 * converted. Throws on a rule that it cannot describe (decision 0036).
 */
export function fromJoi(schema: Joi.Schema): JsonSchema {
  // `describe()` has this shape, and joi-to-json uses nothing else of a schema.
  const description = inPlainWords(schema.describe() as Description);
  const described = { describe: () => description } as unknown as Joi.Schema;
  return convert(described as never, 'open-api-3.1', {}, { logicalOpParser: { xor: exactlyOne } }) as JsonSchema;
}
