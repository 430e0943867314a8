import { isRecord } from '../../shared/contracts/parse.ts';
import { words } from '../../shared/contracts/chat-request.ts';
import type { AnswerSchema } from '../../shared/contracts/chat-request.ts';
import { refuse } from './completion-messages.ts';

/**
 * Structured output of `POST /chat/completions`: checks a caller's JSON schema before anything is paid for it
 * (docs/spec.md#structured-output). Only walks it: the worker validates answers (workers/pipeline/json-answer.ts).
 */

const PARAM = 'response_format.json_schema';
const SCHEMA_PARAM = `${PARAM}.schema`;
const NAME = /^[\w-]{1,64}$/;

/** OpenAI's limits on structured outputs, but for the first two, which bound any schema. */
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
const STRICT_KEYWORDS = words(
  'type properties required additionalProperties items anyOf enum const $ref $defs definitions pattern format ' +
    'minLength maxLength minItems maxItems multipleOf minimum maximum exclusiveMinimum exclusiveMaximum ' +
    'title description default examples $schema $id $comment deprecated',
);
const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);
/** Their values are data, not schemas. */
const DATA_KEYWORDS: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples']);

type Json = Readonly<Record<string, unknown>>;

/** Keywords whose schemas bear on the same value as the schema around them. */
const IN_PLACE = words('$ref allOf anyOf oneOf not if then else');
/** Keywords whose value is a schema or a list of them, and those of which it is an object of schemas. */
const SCHEMAS = words(
  'allOf anyOf oneOf not if then else prefixItems items additionalItems contains propertyNames additionalProperties unevaluatedItems unevaluatedProperties',
);
const MAPS = words('properties patternProperties $defs definitions dependentSchemas dependencies');

type Test = (value: unknown) => boolean;
const isText: Test = (value) => typeof value === 'string';
const isNumber: Test = (value) => typeof value === 'number';
const isCount: Test = (value) => Number.isInteger(value) && Number(value) >= 0;
const isFilled: Test = (value) => Array.isArray(value) && value.length > 0;
const isTexts: Test = (value) => Array.isArray(value) && value.every(isText);
const isSchema: Test = (value) => typeof value === 'boolean' || isRecord(value);
const isSchemas: Test = (value) => Array.isArray(value) && value.every(isSchema);
const mapOf =
  (isValue: Test): Test =>
  (value) =>
    isRecord(value) && Object.values(value).every(isValue);

function isPattern(source: unknown): boolean {
  try {
    return isText(source) && RegExp(String(source), 'u') instanceof RegExp;
  } catch {
    return false;
  }
}

/** Shapes of the values of keywords. The validator skips some that have another, and fails every answer for others. */
const SHAPES: readonly [keywords: string, holds: Test, rule: string][] = [
  [
    'type',
    (value) => TYPES.has(value) || (isFilled(value) && (value as unknown[]).every((type) => TYPES.has(type))),
    `must be one of ${[...TYPES].join(', ')}, or a list of them`,
  ],
  ['allOf anyOf oneOf prefixItems', (value) => isFilled(value) && isSchemas(value), 'must be a list of schemas'],
  ['items', (value) => isSchema(value) || isSchemas(value), 'must be a schema'],
  ['not if then else contains propertyNames additionalItems', isSchema, 'must be a schema'],
  ['additionalProperties unevaluatedItems unevaluatedProperties', isSchema, 'must be a schema'],
  ['properties $defs definitions dependentSchemas', mapOf(isSchema), 'must be an object of schemas'],
  [
    'patternProperties',
    (value) => mapOf(isSchema)(value) && Object.keys(value as Json).every(isPattern),
    'must be an object of schemas, named by regular expressions of JavaScript',
  ],
  [
    'dependencies',
    mapOf((value) => isSchema(value) || isTexts(value)),
    'must be an object of schemas or lists of names',
  ],
  ['dependentRequired', mapOf(isTexts), 'must be an object of lists of names'],
  ['required', isTexts, 'must be a list of names'],
  ['enum', isFilled, 'must be a list of values'],
  ['minLength maxLength minItems maxItems', isCount, 'must be a whole number, at least 0'],
  ['minProperties maxProperties minContains maxContains', isCount, 'must be a whole number, at least 0'],
  ['minimum maximum exclusiveMinimum exclusiveMaximum', isNumber, 'must be a number'],
  ['multipleOf', (value) => isNumber(value) && Number(value) > 0, 'must be a number above 0'],
  ['uniqueItems', (value) => typeof value === 'boolean', 'must be a boolean'],
  ['pattern', isPattern, 'must be a regular expression of JavaScript'],
  ['$ref format', isText, 'must be a string'],
  ['$id id', (value) => isText(value) && URL.canParse(String(value), 'https://json-schema.org'), 'must be a URL'],
  [
    '$schema',
    (value) => isText(value) && /^https?:\/\/json-schema\.org\//.test(String(value)),
    'must be a draft of JSON Schema, such as `https://json-schema.org/draft/2020-12/schema`',
  ],
  ['$dynamicRef $recursiveRef', () => false, 'is not supported; use `$ref`'],
];
const SHAPE_OF = new Map(
  SHAPES.flatMap(([keywords, holds, rule]) => keywords.split(' ').map((name) => [name, { holds, rule }] as const)),
);

/**
 * Finds the schema to which a reference such as `#/$defs/step` leads in the same document; undefined: none. Data hold
 * none, nor do lists of unknown keywords: the validator finds nothing in them.
 */
function targetOf(root: Json, ref: unknown): Json | undefined {
  if (ref === '#') return root;
  if (typeof ref !== 'string' || !ref.startsWith('#/')) return undefined;
  let at: unknown = root;
  let isSchemaHere = true;
  for (const part of ref.slice(2).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Json)[name];
    if (isSchemaHere && (DATA_KEYWORDS.has(name) || (Array.isArray(at) && !SCHEMAS.has(name)))) return undefined;
    isSchemaHere = !isSchemaHere || !(Array.isArray(at) || MAPS.has(name));
  }
  return isRecord(at) && isSchemaHere ? at : undefined;
}

/** Recursion ends at the greatest depth. The names in a map are the caller's: a property may have that of a keyword. */
function checkDepth(value: unknown, path: string, depth: number, isMap = false): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > LIMITS.depth) refuse(SCHEMA_PARAM, `must not be nested deeper than ${LIMITS.depth} levels`);
  for (const [name, child] of Object.entries(value)) {
    if (name === '__proto__') refuse(path, 'must not contain the key `__proto__`');
    const at = Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`;
    if (isMap || !DATA_KEYWORDS.has(name)) checkDepth(child, at, depth + 1, !isMap && MAPS.has(name));
  }
}

/** Refuses a way without an end through schemas that bear on the same value as this one. */
function checkCircle(schema: Json, path: string, root: Json, ended: Set<Json>, steps = 0): void {
  if (ended.has(schema)) return;
  if (steps > LIMITS.depth)
    refuse(path, `must not lead to itself, or through ${LIMITS.depth} schemas, without a step into the answer`);
  for (const [name, value] of Object.entries(schema)) {
    const next = name === '$ref' ? targetOf(root, value) : value;
    const isMap = name === 'dependentSchemas' || name === 'dependencies';
    if (!isMap && !IN_PLACE.has(name)) continue;
    for (const each of isMap ? Object.values(value as Json) : [next].flat())
      if (isRecord(each)) checkCircle(each, path, root, ended, steps + 1);
  }
  ended.add(schema);
}

function insideOf(schema: Json, path: string): [child: unknown, path: string][] {
  return Object.entries(schema).flatMap(([name, value]): [unknown, string][] => {
    const at = `${path}.${name}`;
    if (MAPS.has(name)) return Object.entries(value as Json).map(([key, child]) => [child, `${at}.${key}`]);
    if (!SCHEMAS.has(name)) return [];
    return Array.isArray(value) ? value.map((child, index) => [child, `${at}[${index}]`]) : [[value, at]];
  });
}

function checkShapes(schema: Json, path: string): void {
  for (const [name, value] of Object.entries(schema)) {
    const shape = SHAPE_OF.get(name);
    if (shape?.holds(value) === false) refuse(`${path}.${name}`, shape.rule);
  }
}

/** The validator resolves an `$id` against this where the root has none. */
const VALIDATOR_URL = 'https://github.com/cfworker';

/**
 * The validator resolves references inside of a schema with an `$id` against that, where it finds none of this document, and
 * walks a schema once more for each `$id` around it. Returns whether schemas inside stand inside an `$id`, the root's aside.
 */
function checkId(schema: Json, path: string, ids: Set<string>, isInside: boolean): boolean {
  // Both are texts (SHAPES); the validator takes an empty one for none.
  const id = [schema['$id'], schema['id']].find((text) => typeof text === 'string' && text !== '') as
    string | undefined;
  const isRoot = path === SCHEMA_PARAM;
  const isNested = isInside || (id !== undefined && !isRoot);
  if (isNested && schema['$ref'] !== undefined)
    refuse(`${path}.$ref`, 'must not stand inside a schema with an `$id` of its own; leave that `$id` out');
  if (id === undefined && !isRoot) return isNested;
  const [base = VALIDATOR_URL] = ids;
  const href = URL.parse(id ?? '', base)?.href;
  if (href === undefined || isInside || ids.has(href))
    refuse(`${path}.$id`, 'must be a URL of its own beside that of the root, and stand inside no other `$id`');
  ids.add(href);
  return isNested;
}

/** Refuses what a schema of either kind must not have. */
function checkAny(root: Json): void {
  const seen = new Set<unknown>();
  const left: [schema: unknown, path: string, isInsideId: boolean][] = [[root, SCHEMA_PARAM, false]];
  const ids = new Set<string>();
  /** Walked last, because most stand inside another schema, by whose path they are known. */
  const targets: [Json, string, false][] = [];
  const references: [Json, string][] = [];
  for (let next = left.pop(); next !== undefined; next = left.pop() ?? targets.pop()) {
    const [schema, path, isInsideId] = next;
    if (!isRecord(schema) || seen.has(schema)) continue;
    seen.add(schema);
    checkShapes(schema, path);
    const hasId = checkId(schema, path, ids, isInsideId);
    for (const [child, at] of insideOf(schema, path)) left.push([child, at, hasId]);
    if (schema['$ref'] === undefined) continue;
    const target = targetOf(root, schema['$ref']);
    const at = `${path}.$ref`;
    if (target === undefined)
      refuse(at, 'must lead to a schema inside this one, such as `#/$defs/name`; others are not fetched');
    targets.push([target, at, false]);
    references.push([schema, at]);
  }
  const ended = new Set<Json>();
  for (const [schema, at] of references) checkCircle(schema, at, root, ended);
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
  const names = new Set(required as string[]);
  const left = Object.keys(properties as Json).find((name) => !names.has(name));
  if (left !== undefined)
    refuse(
      `${path}.required`,
      `must name every property in a strict schema; \`${left}\` is missing: let its type be null, too, if it may be absent`,
    );
  const extra = [...names].find((name) => !Object.hasOwn(properties as Json, name));
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
  if (types.length === 0 && !['anyOf', '$ref', 'enum', 'const'].some((name) => schema[name] !== undefined))
    refuse(path, 'must have a `type`');
}

/** The subschemas of a strict schema, and by how many levels each is deeper. */
function childrenOf(schema: Json, path: string, counts: Counts): [child: unknown, path: string, deeper: number][] {
  const children: [unknown, string, number][] = [];
  for (const name of ['properties', '$defs', 'definitions']) {
    const map = schema[name];
    if (map === undefined) continue;
    count(counts, 'properties', Object.keys(map as Json));
    for (const [key, child] of Object.entries(map as Json)) children.push([child, `${path}.${name}.${key}`, 1]);
  }
  if (schema['items'] !== undefined) children.push([schema['items'], `${path}.items`, 1]);
  const anyOf = (schema['anyOf'] ?? []) as unknown[];
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
  checkDepth(schema, SCHEMA_PARAM, 1);
  // The depth is bounded by now, so this cannot exhaust the stack.
  if (Buffer.byteLength(JSON.stringify(format)) > LIMITS.bytes)
    refuse(SCHEMA_PARAM, `must not exceed ${LIMITS.bytes / 1024} KiB as JSON`);
  checkAny(schema);
  if (schema['type'] !== 'object') refuse(`${SCHEMA_PARAM}.type`, 'must be `object`: an answer is an object');
  if (strict === true) {
    if (schema['anyOf'] !== undefined) refuse(`${SCHEMA_PARAM}.anyOf`, 'must not stand at the root of a strict schema');
    checkStrict(schema, SCHEMA_PARAM, 0, { properties: 0, enumValues: 0, nameUnits: 0 });
  }
  return { name, schema, strict: strict === true, ...(typeof description === 'string' ? { description } : {}) };
}
