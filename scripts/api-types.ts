/** The types that `openapi-fetch` and the console read, of a document of this service. */

/** The part of JSON Schema that both documents use. */
interface Schema {
  $ref?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  type?: string | string[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
}
interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  schema: Schema;
}
interface Body {
  $ref?: string;
  required?: boolean;
  content?: Record<string, { schema: Schema }>;
}
interface Operation {
  parameters?: Parameter[];
  requestBody?: Body;
  responses: Record<string, Body>;
}
interface Document {
  paths: Record<string, Partial<Record<(typeof METHODS)[number], Operation>>>;
  components: {
    schemas: Record<string, Schema>;
    parameters: Record<string, Parameter>;
    responses: Record<string, Body>;
  };
}

const METHODS = ['get', 'put', 'post', 'patch', 'delete'] as const;

const either = (types: string[]) => `(${types.join(' | ')})`;

/** An object's type; a name that ends with a question mark may be absent, one of digits alone is a number. */
function objectOf(rows: Iterable<[string, string]>): string {
  const lines = Array.from(rows, ([name, type]) => {
    const [, bare = '', mark = ''] = /^(.*?)(\??)$/.exec(name) ?? [];
    return `${/^\d+$/.test(bare) ? bare : JSON.stringify(bare)}${mark}: ${type};\n`;
  });
  return `{\n${lines.join('')}}`;
}

function typeOf(schema: Schema): string {
  const { $ref, enum: values, anyOf = schema.oneOf, type, items = {}, properties, required = [] } = schema;
  if ($ref !== undefined) return $ref.replace('#/', '').replaceAll(/\/([^/]+)/g, '["$1"]');
  if ('const' in schema) return JSON.stringify(schema.const);
  if (values !== undefined) return either(values.map((value) => JSON.stringify(value)));
  if (Array.isArray(type)) return either(type.map((one) => typeOf({ ...schema, type: one })));
  const others = schema.additionalProperties ?? properties === undefined;
  const open = others === false ? '' : `{ [key: string]: ${others === true ? 'unknown' : typeOf(others)} }`;
  if (properties !== undefined && type !== 'null') {
    const rows = Object.entries(properties).map(([name, property]): [string, string] => [
      required.includes(name) ? name : `${name}?`,
      typeOf(property),
    ]);
    return open === '' ? objectOf(rows) : `(${objectOf(rows)} & ${open})`;
  }
  if (anyOf !== undefined) return either(anyOf.map(typeOf));
  if (type === 'array') return `${typeOf(items)}[]`;
  if (type === 'object') return open === '' ? 'Record<string, never>' : open;
  return type === 'integer' ? 'number' : (type ?? 'unknown');
}

function bodyOf({ content }: Body): string {
  if (content === undefined) return '{ content?: never }';
  return `{ content: ${objectOf(Object.entries(content).map(([kind, { schema }]) => [kind, typeOf(schema)]))} }`;
}

/** The file's text; `served` has passed through JSON, so that it is what clients read. */
export function writeTypes(served: string): string {
  const { paths, components } = JSON.parse(served) as Document;
  const resolve = <Part extends { $ref?: string }>(parts: Record<string, Part>, part: Part) =>
    parts[part.$ref?.split('/').at(-1) ?? ''] ?? part;
  const operationOf = ({ parameters = [], requestBody, responses }: Operation) => {
    const places = Map.groupBy(
      parameters.map((parameter) => resolve(components.parameters, parameter)),
      (parameter) => parameter.in,
    );
    const groups = Array.from(places, ([place, group]): [string, string] => [
      group.some(({ required }) => required) ? place : `${place}?`,
      objectOf(group.map(({ name, required = false, schema }) => [required ? name : `${name}?`, typeOf(schema)])),
    ]);
    const answers = Object.entries(responses).map(([status, response]): [string, string] => [
      status,
      bodyOf(resolve(components.responses, response)),
    ]);
    return objectOf([
      ['parameters', objectOf(groups)],
      ...(requestBody === undefined
        ? []
        : [[requestBody.required ? 'requestBody' : 'requestBody?', bodyOf(requestBody)] satisfies [string, string]]),
      ['responses', objectOf(answers)],
    ]);
  };
  const all = Object.entries(paths).map(([path, item]): [string, string] => [
    path,
    objectOf(METHODS.flatMap((method) => (item[method] === undefined ? [] : [[method, operationOf(item[method])]]))),
  ]);
  const schemas = objectOf(Object.entries(components.schemas).map(([name, schema]) => [name, typeOf(schema)]));
  return `export interface paths ${objectOf(all)}\nexport interface components { schemas: ${schemas} }\n`;
}
