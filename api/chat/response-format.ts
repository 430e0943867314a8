import { isRecord } from '../../shared/contracts/parse.ts';
import type { AnswerSchema } from '../../shared/contracts/chat-request.ts';
import { refuse } from './completion-messages.ts';

/**
 * Structured output of `POST /chat/completions`: checks a caller's JSON schema before anything is paid for it
 * (docs/spec.md#structured-output). Only walks it, once: the worker validates answers (workers/pipeline/json-answer.ts).
 */

const PARAM = 'response_format.json_schema';
const SCHEMA_PARAM = `${PARAM}.schema`;
const NAME = /^[\w-]{1,64}$/;

/** Those of OpenAI's page on structured outputs, but for the first two, which bound any schema. */
const LIMITS = {
  bytes: 256 * 1024,
  depth: 64,
  strictDepth: 10,
  properties: 5_000,
  enumValues: 1_000,
  /** Names of properties and definitions, and values of `enum` and `const`, together. */
  nameUnits: 120_000,
} as const;

/** Keywords of a strict schema: those that bear on an answer, and those that only describe it. */
const STRICT_KEYWORDS: ReadonlySet<string> = new Set(
  (
    'type properties required additionalProperties items anyOf enum const $ref $defs definitions pattern format ' +
    'minLength maxLength minItems maxItems multipleOf minimum maximum exclusiveMinimum exclusiveMaximum ' +
    'title description default examples $schema $id $comment deprecated'
  ).split(' '),
);
const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);
/** Their values are data, not schemas. */
const DATA_KEYWORDS: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples']);

type Json = Readonly<Record<string, unknown>>;

/** Tells whether a reference such as `#/$defs/step` leads to a schema of the same document. */
function isResolvable(root: Json, ref: string): boolean {
  if (ref === '#') return true;
  if (!ref.startsWith('#/')) return false;
  let at: unknown = root;
  for (const part of ref.slice(2).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return false;
    at = (at as Json)[name];
  }
  return isRecord(at);
}

function isPattern(source: string): boolean {
  try {
    return RegExp(source, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}

/** Parts that a schema of either kind must not have. Recursion ends at the greatest depth. */
function checkAny(value: unknown, root: Json, path: string, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > LIMITS.depth) refuse(SCHEMA_PARAM, `must not be nested deeper than ${LIMITS.depth} levels`);
  for (const [name, child] of Object.entries(value)) {
    if (name === '__proto__') refuse(path, 'must not contain the key `__proto__`');
    const at = Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`;
    if (name === '$ref' && typeof child === 'string' && !isResolvable(root, child))
      refuse(at, 'must lead to a schema inside this one, such as `#/$defs/name`; others are not fetched');
    if (name === 'pattern' && typeof child === 'string' && !isPattern(child))
      refuse(at, 'must be a regular expression of JavaScript');
    if (!DATA_KEYWORDS.has(name)) checkAny(child, root, at, depth + 1);
  }
}

interface Counts {
  properties: number;
  enumValues: number;
  nameUnits: number;
}

function count(counts: Counts, kind: 'properties' | 'enumValues', values: readonly unknown[]): void {
  counts[kind] += values.length;
  for (const value of values) counts.nameUnits += typeof value === 'string' ? value.length : 1;
  if (counts[kind] > LIMITS[kind]) {
    const what = kind === 'properties' ? 'properties' : 'values of `enum`';
    refuse(SCHEMA_PARAM, `must not have more than ${LIMITS[kind].toLocaleString('en')} ${what}`);
  }
  if (counts.nameUnits > LIMITS.nameUnits)
    refuse(SCHEMA_PARAM, `must not name more than ${LIMITS.nameUnits.toLocaleString('en')} characters`);
}

/** A strict object has exactly the properties that it names. */
function checkObject(schema: Json, path: string): void {
  if (schema['additionalProperties'] !== false)
    refuse(`${path}.additionalProperties`, 'must be false in a strict schema');
  const { properties = {}, required = [] } = schema;
  if (!isRecord(properties)) refuse(`${path}.properties`, 'must be an object');
  if (!Array.isArray(required)) refuse(`${path}.required`, 'must be an array');
  const names = new Set<unknown>(required);
  const left = Object.keys(properties).find((name) => !names.has(name));
  if (left !== undefined)
    refuse(
      `${path}.required`,
      `must name every property in a strict schema; \`${left}\` is missing: let its type be null, too, if it may be absent`,
    );
  const extra = [...names].find((name) => typeof name !== 'string' || !Object.hasOwn(properties, name));
  if (extra !== undefined) refuse(`${path}.required`, `names ${JSON.stringify(extra)}, which is no property`);
}

function typesOf({ type }: Json): unknown[] {
  return type === undefined ? [] : [type].flat();
}

function checkKeywords(schema: Json, path: string): void {
  for (const name of Object.keys(schema)) {
    if (!STRICT_KEYWORDS.has(name))
      refuse(`${path}.${name}`, 'is not supported in a strict schema; leave it out, or set `strict` to false');
  }
  const types = typesOf(schema);
  const wrong = types.find((type) => !TYPES.has(type));
  if (wrong !== undefined || (types.length === 0 && schema['type'] !== undefined))
    refuse(`${path}.type`, `must be one of ${[...TYPES].join(', ')}, or a list of them`);
  if (types.length === 0 && !['anyOf', '$ref', 'enum', 'const'].some((name) => schema[name] !== undefined))
    refuse(path, 'must have a `type`');
}

/** The subschemas of a strict schema, and by how many levels each is deeper. */
function childrenOf(schema: Json, path: string, counts: Counts): [child: unknown, path: string, deeper: number][] {
  const children: [unknown, string, number][] = [];
  for (const name of ['properties', '$defs', 'definitions']) {
    const map = schema[name];
    if (map === undefined) continue;
    if (!isRecord(map)) refuse(`${path}.${name}`, 'must be an object');
    count(counts, 'properties', Object.keys(map));
    for (const [key, child] of Object.entries(map)) children.push([child, `${path}.${name}.${key}`, 1]);
  }
  if (schema['items'] !== undefined) children.push([schema['items'], `${path}.items`, 1]);
  const { anyOf } = schema;
  if (anyOf === undefined) return children;
  if (!Array.isArray(anyOf) || anyOf.length === 0) refuse(`${path}.anyOf`, 'must be a list of schemas');
  return [
    ...children,
    ...anyOf.map((child, index): [unknown, string, number] => [child, `${path}.anyOf[${index}]`, 0]),
  ];
}

function checkStrict(schema: unknown, path: string, depth: number, counts: Counts): void {
  if (!isRecord(schema)) refuse(path, 'must be an object');
  if (depth > LIMITS.strictDepth) refuse(path, `is nested deeper than ${LIMITS.strictDepth} levels`);
  checkKeywords(schema, path);
  const types = typesOf(schema);
  if (types.includes('object') || schema['properties'] !== undefined) checkObject(schema, path);
  if (types.includes('array') && schema['items'] === undefined) refuse(path, 'must have `items`, as a list does');
  const { enum: values, const: only } = schema;
  if (values !== undefined && (!Array.isArray(values) || values.length === 0))
    refuse(`${path}.enum`, 'must be a list of values');
  count(counts, 'enumValues', [...((values ?? []) as unknown[]), ...(only === undefined ? [] : [only])]);
  for (const [child, at, deeper] of childrenOf(schema, path, counts)) checkStrict(child, at, depth + deeper, counts);
}

/** The `json_schema` of a `response_format`. Throws `invalid_request`, with the path of what is wrong. */
export function readAnswerSchema(format: unknown): AnswerSchema {
  if (!isRecord(format)) refuse(PARAM, 'must be an object with `name` and `schema`');
  const { name, description, schema, strict } = format;
  if (typeof name !== 'string' || !NAME.test(name))
    refuse(`${PARAM}.name`, 'must be 1 to 64 letters, digits, underscores or hyphens');
  if (description !== undefined && description !== null && typeof description !== 'string')
    refuse(`${PARAM}.description`, 'must be a string');
  if (strict !== undefined && strict !== null && typeof strict !== 'boolean')
    refuse(`${PARAM}.strict`, 'must be a boolean');
  if (!isRecord(schema)) refuse(SCHEMA_PARAM, 'must be a JSON schema');
  checkAny(schema, schema, SCHEMA_PARAM, 1);
  // The depth is bounded by now, so this cannot exhaust the stack.
  if (Buffer.byteLength(JSON.stringify(format)) > LIMITS.bytes)
    refuse(SCHEMA_PARAM, `must not exceed ${LIMITS.bytes / 1024} KiB as JSON`);
  const isObject = typesOf(schema).every((type) => type === 'object');
  if (!isObject || (strict === true && schema['type'] !== 'object'))
    refuse(`${SCHEMA_PARAM}.type`, 'must be `object`: an answer is an object');
  if (strict === true) {
    if (schema['anyOf'] !== undefined) refuse(`${SCHEMA_PARAM}.anyOf`, 'must not stand at the root of a strict schema');
    checkStrict(schema, SCHEMA_PARAM, 0, { properties: 0, enumValues: 0, nameUnits: 0 });
  }
  return { name, schema, strict: strict === true, ...(typeof description === 'string' ? { description } : {}) };
}
