/** An OpenAPI document as it was served, as far as it is looked into here. */
export interface ServedDocument {
  servers: { url: string }[];
  paths: Record<string, PathItem>;
  webhooks: Record<string, { post: ServedOperation }>;
  components: Record<string, Record<string, Referable>>;
}

export interface Referable {
  $ref?: string;
}

type PathItem = Partial<Record<Method, ServedOperation>> & { servers?: { url: string }[] };

interface ServedExample extends Referable {
  value?: unknown;
}

export interface ServedContent {
  schema: Schema;
  examples?: Record<string, ServedExample>;
}

export interface ServedParameter extends Referable {
  name: string;
  in: 'path' | 'query' | 'header';
  schema: Schema;
  example?: string;
  examples?: Record<string, ServedExample>;
}

interface ServedResponse extends Referable {
  headers?: Record<string, Referable>;
  content?: Record<string, ServedContent>;
  'x-error-codes'?: string[];
}

/** A response with the place where it stands: a JSON pointer. */
export type PlacedResponse = ServedResponse & { pointer: string };

interface ServedOperation {
  operationId: string;
  security?: Record<string, string[]>[];
  parameters?: ServedParameter[];
  requestBody?: { required: boolean; content: Record<string, ServedContent> };
  responses: Record<string, ServedResponse>;
}

/** JSON Schema 2020-12. */
export interface Schema extends Referable {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  pattern?: string;
  format?: string;
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;
type Method = (typeof METHODS)[number];

/** One operation with everything it refers to. */
export interface Endpoint {
  id: string;
  method: Method;
  /** With `{name}` for each parameter, and behind the server's own path. */
  template: string;
  /** Where it stands in the document: a JSON pointer. */
  pointer: string;
  /** Scopes of which a key needs one; none: no key is needed, or every key will do. */
  scopes: string[];
  needsKey: boolean;
  parameters: ServedParameter[];
  body: Record<string, ServedContent>;
  responses: Record<string, PlacedResponse>;
}

export const pointerOf = (...parts: string[]): string =>
  parts.map((part) => `/${encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('');

/** What a reference in the document stands for, or the thing itself. */
export function follow<T extends Referable>(document: ServedDocument, item: T): T {
  const match = /^#\/components\/([^/]+)\/(.+)$/.exec(item.$ref ?? '');
  if (match === null) return item;
  const [, kind = '', name = ''] = match;
  const found = document.components[kind]?.[name];
  if (found === undefined) throw new Error(`The document has no ${kind} ${name}.`);
  // Whoever refers to a component refers to one of the same kind.
  return found as T;
}

export function endpointsOf(document: ServedDocument): Endpoint[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      if (operation === undefined) return [];
      const base = (item.servers ?? document.servers)[0]?.url ?? '';
      const pointer = pointerOf('paths', path, method);
      const responses = Object.entries(operation.responses).map(([status, response]) => {
        const place = response.$ref?.slice(1) ?? pointer + pointerOf('responses', status);
        return [status, { ...follow(document, response), pointer: place }] as const;
      });
      return [
        {
          id: operation.operationId,
          method,
          template: `${base.replace(/\/$/, '')}${path}`,
          pointer,
          scopes: (operation.security ?? []).flatMap((requirement) => Object.values(requirement).flat()),
          needsKey: (operation.security ?? []).length > 0,
          parameters: (operation.parameters ?? []).map((parameter) => follow(document, parameter)),
          body: operation.requestBody?.content ?? {},
          responses: Object.fromEntries(responses),
        },
      ];
    }),
  );
}
