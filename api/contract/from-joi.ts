import type Joi from 'joi';

import type { JsonSchema } from './json-schema.ts';

/** The result of `describe()`, as far as the schemas here use it. */
interface Description {
  type: string;
  flags?: { only?: boolean; presence?: string; description?: string; default?: unknown };
  rules?: { name: string; args?: Record<string, unknown> }[];
  allow?: unknown[];
  metas?: Meta[];
  keys?: Record<string, Description>;
  items?: Description[];
  matches?: { schema?: Description }[];
  dependencies?: { rel: string; peers: string[] }[];
}

/** A schema's own words for the document, in `.meta()`; its other members are keywords of JSON Schema. */
interface Meta {
  /** A custom rule in words, if JSON Schema cannot express it. */
  rule?: string;
  /** Replaces joi's schema by that of the value which the text of a query parameter stands for. */
  reads?: JsonSchema;
}

type Draft = Record<string, unknown>;

/** Anything not listed here throws, because it would silently be missing from the document. */
const KNOWN = new Set(['type', 'flags', 'rules', 'allow', 'metas', 'keys', 'items', 'matches', 'dependencies']);
const KNOWN_BESIDE = new Set(['preferences', 'examples']);
const KNOWN_RULES: Readonly<Record<string, readonly string[]>> = {
  string: ['min', 'max', 'pattern'],
  number: ['integer', 'min', 'max', 'greater'],
  array: ['min', 'max', 'unique'],
  object: ['max'],
};

function assertKnown({ type, rules = [], metas = [], matches = [], dependencies = [], ...node }: Description): void {
  const strange = Object.keys(node).find((name) => !KNOWN.has(name) && !KNOWN_BESIDE.has(name));
  if (strange !== undefined) throw new Error(`The document cannot tell of joi's ${strange}; add it to from-joi.ts.`);
  const rule = rules.find(({ name }) => name !== 'custom' && !(KNOWN_RULES[type] ?? []).includes(name));
  if (rule !== undefined) throw new Error(`The document cannot tell of joi's ${type}.${rule.name}().`);
  const pattern = rules.find(({ name }) => name === 'pattern')?.args?.['regex'];
  if (typeof pattern === 'string' && !pattern.endsWith('/')) throw new Error('JSON Schema has no flags for patterns.');
  const described = metas.filter((meta) => 'rule' in meta || 'maxLength' in meta).length;
  if (rules.filter(({ name }) => name === 'custom').length > described)
    throw new Error('A custom rule needs .meta({ rule }) for the document.');
  if (matches.some(({ schema }) => schema === undefined))
    throw new Error('The document cannot tell of conditional joi schemas.');
  if (dependencies.some(({ rel }) => rel !== 'xor')) throw new Error('The document can tell of joi’s xor() only.');
}

/** Adds to a draft what joi checks and does not say: safe numbers, `xor`, null beside fixed values, and metas. */
function refine(draft: Draft, node: Description): Draft {
  const { flags, metas = [] } = node;
  const { rule, reads, ...keywords } = Object.assign({}, ...metas) as Meta;
  const description = [flags?.description, rule].filter((part) => part !== undefined).join(' ');
  return { ...(reads ?? refineRules(draft, node)), ...keywords, ...(description === '' ? {} : { description }) };
}

function refineRules(draft: Draft, node: Description): Draft {
  assertKnown(node);
  const { type, flags, rules = [], allow = [], keys = {}, items = [], matches = [], dependencies = [] } = node;
  const properties = (draft['properties'] ?? {}) as Record<string, Draft>;
  for (const [name, key] of Object.entries(keys)) properties[name] = refine(properties[name] ?? {}, key);
  if (type === 'object') draft['additionalProperties'] ??= true;
  const [item] = items;
  if (item !== undefined) {
    const among = draft['items'] as Draft;
    draft['items'] = items.length === 1 ? refine(among, item) : { anyOf: refineAll(among['anyOf'], items) };
  }
  if (matches.length > 0) {
    // joi puts null in front of the alternatives.
    const choices = (draft['anyOf'] as Draft[]).slice(-matches.length);
    const schemas = matches.flatMap(({ schema }) => schema ?? []);
    draft['anyOf'] = [...refineAll(choices, schemas), ...(allow.includes(null) ? [{ type: 'null' }] : [])];
  }
  if (type === 'number' && flags?.only !== true) {
    if (!('exclusiveMinimum' in draft)) draft['minimum'] ??= Number.MIN_SAFE_INTEGER;
    draft['maximum'] ??= Number.MAX_SAFE_INTEGER;
  }
  if (Array.isArray(draft['enum']) && allow.includes(null)) draft['enum'].push(null);
  // joi leaves out uniqueness by a member, which implies uniqueness.
  if (rules.some(({ name }) => name === 'unique')) draft['uniqueItems'] = true;
  for (const { peers } of dependencies) draft['oneOf'] = peers.map((peer) => ({ required: [peer] }));
  return draft;
}

function refineAll(drafts: unknown, nodes: readonly Description[]): Draft[] {
  return nodes.map((node, index) => refine((drafts as Draft[])[index] ?? {}, node));
}

/**
 * The JSON Schema of the values that a joi schema accepts without conversion, as `checkAgainst` applies it. Throws on a
 * rule that it cannot describe (docs/decisions/0022-openapi-document.md).
 */
export function fromJoi(schema: Joi.Schema): JsonSchema {
  const draft = schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' });
  return refine(draft, schema.describe() as Description);
}
