import { isObject } from './chat-request.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Deeper than this, a value has only what its schema requires: a schema may contain itself. */
const DEPTH_MAX = 5;

const FORMATS: Readonly<Record<string, string>> = {
  'date-time': '2026-01-01T12:00:00Z',
  date: '2026-01-01',
  time: '12:00:00Z',
  duration: 'PT1H',
  email: 'ada@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
};
/** For a pattern, the first of these that matches. */
const SAMPLES = ['a', 'A', 'abc', 'ABC', '1', '12', '123', '1234', '12345', 'a1', 'A1', 'AB-123', '1.0.0', '#aabbcc'];

/**
 * A value that a JSON schema allows, always the same: the first of an `enum` or of the alternatives, the number
 * next to 1 and the fewest items within the bounds, and as text the name of the property that it stands for.
 */
export function exampleOf(schema: unknown): unknown {
  const root = isObject(schema) ? schema : {};
  return valueOf(root, 'text', 0);

  function valueOf(given: unknown, name: string, depth: number): unknown {
    const one = resolve(given, depth);
    if ('const' in one) return one['const'];
    if (Array.isArray(one['enum'])) return one['enum'][0] as unknown;
    switch (typeOf(one)) {
      case 'object':
        return objectOf(one, depth);
      case 'array':
        return arrayOf(one, name, depth);
      case 'number':
        return numberOf(one, 0);
      case 'integer':
        return numberOf(one, 1);
      case 'boolean':
        return true;
      case 'null':
        return null;
      default:
        return textOf(one, name);
    }
  }

  /** Follows references and joins what `allOf` and the chosen alternative say. */
  function resolve(given: unknown, depth: number, hops = 0): Schema {
    if (!isObject(given) || hops > DEPTH_MAX) return {};
    const { $ref: reference, allOf, anyOf, oneOf, ...own } = given;
    const alternatives: readonly unknown[] = [anyOf, oneOf].find(Array.isArray) ?? [];
    const isNull = (one: unknown) => isObject(one) && one['type'] === 'null';
    const chosen =
      (depth > DEPTH_MAX ? alternatives.find(isNull) : alternatives.find((one) => !isNull(one))) ?? alternatives[0];
    const joined = [
      typeof reference === 'string' ? referred(reference) : undefined,
      ...(Array.isArray(allOf) ? (allOf as readonly unknown[]) : []),
      chosen,
    ].map((part) => resolve(part, depth, hops + 1));
    return joined.reduce<Schema>(
      (all, part) => ({
        ...all,
        ...part,
        ...(isObject(all['properties']) && isObject(part['properties'])
          ? { properties: { ...all['properties'], ...part['properties'] } }
          : {}),
        ...(Array.isArray(all['required']) && Array.isArray(part['required'])
          ? { required: [...(all['required'] as unknown[]), ...(part['required'] as unknown[])] }
          : {}),
      }),
      own,
    );
  }

  function referred(reference: string): unknown {
    const steps = reference.replace(/^#\/?/, '').split('/').filter(Boolean);
    const plain = steps.map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'));
    return plain.reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), root);
  }

  function objectOf(schema: Schema, depth: number): Record<string, unknown> {
    const properties = isObject(schema['properties']) ? schema['properties'] : {};
    const required = Array.isArray(schema['required']) ? schema['required'].map(String) : [];
    const names = depth < DEPTH_MAX ? new Set([...Object.keys(properties), ...required]) : new Set(required);
    return Object.fromEntries(Array.from(names, (name) => [name, valueOf(properties[name], name, depth + 1)]));
  }

  function arrayOf(schema: Schema, name: string, depth: number): unknown[] {
    const first: readonly unknown[] = Array.isArray(schema['prefixItems']) ? schema['prefixItems'] : [];
    const least = typeof schema['minItems'] === 'number' ? schema['minItems'] : depth < DEPTH_MAX ? 1 : 0;
    const most = typeof schema['maxItems'] === 'number' ? schema['maxItems'] : Infinity;
    const length = Math.min(Math.max(least, first.length), most);
    return Array.from({ length }, (_, index) => valueOf(first[index] ?? schema['items'], name, depth + 1));
  }
}

function typeOf(schema: Schema): unknown {
  const { type } = schema;
  if (Array.isArray(type)) return type.find((one) => one !== 'null') ?? 'null';
  if (type !== undefined) return type;
  return ['properties', 'required'].some((key) => key in schema) ? 'object' : 'items' in schema ? 'array' : 'string';
}

function numberOf(schema: Schema, whole: 0 | 1): number {
  const bound = (name: string) => (typeof schema[name] === 'number' ? schema[name] : undefined);
  const step = bound('multipleOf') ?? (whole === 1 ? 1 : 0.5);
  const above = bound('exclusiveMinimum');
  const least = Math.max(bound('minimum') ?? -Infinity, above === undefined ? -Infinity : above + step / 2);
  const below = bound('exclusiveMaximum');
  const most = Math.min(bound('maximum') ?? Infinity, below === undefined ? Infinity : below - step / 2);
  const wanted = Math.max(least, Math.min(1, most));
  const multiple = Math.ceil(wanted / step) * step;
  return multiple <= most ? multiple : whole === 1 || 'multipleOf' in schema ? Math.floor(most / step) * step : wanted;
}

function textOf(schema: Schema, name: string): string {
  const { format, pattern, minLength, maxLength } = schema;
  const known = typeof format === 'string' ? FORMATS[format] : undefined;
  if (known !== undefined) return known;
  if (typeof pattern === 'string') {
    const rule = new RegExp(pattern, 'u');
    return [name, ...SAMPLES].find((text) => rule.test(text)) ?? name;
  }
  const least = typeof minLength === 'number' ? name.padEnd(minLength, '.') : name;
  return typeof maxLength === 'number' ? least.slice(0, maxLength) : least;
}
