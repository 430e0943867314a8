import type { Request } from 'express';

import { ROUTED_TIERS } from '../../shared/contracts/chat-request.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { id, idPattern, oneOf, text } from './json-schema.ts';
import type { JsonSchema } from './json-schema.ts';

interface PathParameter {
  description: string;
  schema: JsonSchema;
  example: string;
  /** The message of `not_found` if nothing has this value. */
  unknown: string;
  /** A value that cannot be an id is answered like an unknown id, and never reaches a database. Absent: any text. */
  pattern?: RegExp;
}

function idOf(prefix: string, noun: string, example: string): PathParameter {
  const schema = id(prefix);
  return {
    description: `The ${noun}.`,
    schema,
    example: `${prefix}_${example}`,
    unknown: `There is no ${noun} with this id.`,
    pattern: new RegExp(idPattern(prefix)),
  };
}

/** Every `:name` that a path may have, or `*name` at its end, which may contain slashes. */
export const PATH_PARAMETERS = {
  requestId: idOf('req', 'request', '4fK2mZ8sQ1xY7bN3vC6tR9wE'),
  batchId: idOf('batch', 'batch', '1aB2cD3eF4gH5iJ6kL7mN8oP'),
  keyId: idOf('key', 'API key', '9dJ3nR5wT7yU1pL8sA2fG4hK'),
  entityId: {
    description: "The caller's own id of the entity, percent-encoded.",
    schema: { ...text(), minLength: 1, maxLength: 256 },
    example: 'pupil-7',
    unknown: 'There is no entity with this entity_id.',
  },
  webhookId: idOf('whk', 'webhook', '2bV6cX8zM4nQ1wE5rT9yU7iO'),
  deliveryId: idOf('dlv', 'delivery', '7gH1jK3lP5oI9uY2tR6eW4qZ'),
  exportId: idOf('exp', 'export', '1aB2cD3eF4gH5iJ6kL7mN8oP'),
  deletionId: idOf('del', 'deletion', '1aB2cD3eF4gH5iJ6kL7mN8oP'),
  checkoutId: idOf('cs', 'checkout', '3sD5fG7hJ9kL1qW2eR4tY6uI'),
  tenantId: idOf('ten', 'tenant', '5kJ8hG2fD4sA6pO9iU3yT7rE'),
  provider: {
    description: "The provider's name.",
    schema: { type: 'string', pattern: '^[a-z0-9][a-z0-9_-]{0,62}$' },
    example: 'openai',
    unknown: 'There is no provider with this name.',
  },
  queue: {
    description: 'Shard and name of the queue, as its `id` in the list.',
    schema: { type: 'string', pattern: '^\\d+:[a-z]+$' },
    example: '0:interactive',
    unknown: 'There is no queue with this id; GET /admin/v1/queues lists them.',
  },
  tier: {
    description: 'The model tier.',
    schema: oneOf(ROUTED_TIERS),
    example: 'mobius',
    unknown: 'There is no tier with this name.',
  },
  model: {
    description: 'The name of the model, percent-encoded.',
    schema: { ...text(), minLength: 1, maxLength: 128 },
    example: 'mobius',
    unknown: 'There is no model with this name.',
  },
  name: {
    description: 'The name that callers send as `model`, percent-encoded.',
    schema: { ...text(), minLength: 1, maxLength: 128 },
    example: 'gpt-4o-mini',
    unknown: 'There is no published model with this name.',
  },
} as const satisfies Readonly<Record<string, PathParameter>>;

export type PathParam = keyof typeof PATH_PARAMETERS;

export type ParamsOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamsOf<`/${Rest}`>
  : Path extends `${string}${':' | '*'}${infer Name}`
    ? Name
    : never;

function isPathParam(name: string): name is PathParam {
  return Object.hasOwn(PATH_PARAMETERS, name);
}

/** Returns the names in order. Throws if the table lacks one of them. */
export function paramsOf(path: string): PathParam[] {
  return [...path.matchAll(/[:*](\w+)/g)].map(([, name = '']) => {
    if (!isPathParam(name)) throw new Error(`The table of path parameters lacks :${name}`);
    return name;
  });
}

/** A value in a request's path, decoded. Throws `not_found` for one that cannot be an id. */
export function readParam(req: Request, name: PathParam): string {
  // Express gives a `*name` by its segments.
  const value = [req.params[name] ?? []].flat().join('/');
  const { pattern, unknown }: PathParameter = PATH_PARAMETERS[name];
  if (pattern?.test(value) === false) throw new ServiceError('not_found', unknown);
  return value;
}

/** Throws `not_found` if the thing that the path names does not exist. */
export function found<T>(value: T | undefined, param: PathParam): T {
  if (value === undefined) throw new ServiceError('not_found', PATH_PARAMETERS[param].unknown);
  return value;
}

/** A name in wire notation: `requestId` becomes `request_id`. */
export function wireName(param: string): string {
  return param.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A path in OpenAPI's notation: `/chat/{request_id}`. */
export function templateOf(path: string): string {
  return path.replaceAll(/[:*](\w+)/g, (_whole, name: string) => `{${wireName(name)}}`);
}
