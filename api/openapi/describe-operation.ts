import type { ErrorCode } from '../../shared/errors/codes.ts';
import { headersOf, REQUEST_HEADERS } from '../contract/headers.ts';
import type { Header, RequestHeaderName } from '../contract/headers.ts';
import { named } from '../contract/json-schema.ts';
import type { JsonSchema } from '../contract/json-schema.ts';
import type { Answer, Example, Operation } from '../contract/endpoint.ts';
import { paramsOf } from '../contract/path-parameters.ts';
import { describeErrorGroup, groupByStatus, nameOfGroup } from './error-responses.ts';
import { fromJoi } from '../contract/from-joi.ts';

export interface Api<Each extends Operation> {
  title: string;
  summary: string;
  description: string;
  server: string;
  /** The groups of endpoints in the document's order, with a description of each. */
  tags: Readonly<Record<string, string>>;
  /** By operation id. */
  endpoints: Readonly<Record<string, Each>>;
  headers: Readonly<Record<string, Header>>;
  /** The headers that every answer with this status has. */
  headersOfStatus: (status: number) => readonly string[];
  errorsOf: (endpoint: Each) => readonly ErrorCode[];
  isIdempotent: (endpoint: Each) => boolean;
  securityOf: (endpoint: Each) => readonly object[];
  securitySchemes: Readonly<Record<string, object>>;
  /** Paths that are not endpoints. */
  otherPaths: Readonly<Record<string, object>>;
  webhooks: Readonly<Record<string, object>>;
}

type Named<T> = Readonly<Record<string, T>>;

/** The examples that have the value, by name. */
function pick<T>(examples: Named<Example>, valueOf: (example: Example) => T | undefined) {
  const found = Object.entries(examples).flatMap(([name, example]) => {
    const value = valueOf(example);
    if (value === undefined) return [];
    return [[name, { ...(example.summary === undefined ? {} : { summary: example.summary }), value }] as const];
  });
  return found.length === 0 ? {} : { examples: Object.fromEntries(found) };
}

function queryParameters({ query, examples }: Operation) {
  const parts = (query?.schemas ?? []).map((schema) => fromJoi(schema)['properties']);
  const schemas = Object.assign({}, ...parts) as Named<JsonSchema>;
  return Object.entries(schemas).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    ...(description === undefined ? {} : { description }),
    schema,
    ...pick(examples, (example) => example.query?.[name]),
  }));
}

/** Pages fill in the first example by themselves, so that one stands for no header. */
const LEFT_OUT = { summary: 'Omitted', value: '' };

function headerParameters(headers: readonly RequestHeaderName[], { examples }: Operation) {
  // A header without its own example is described only once, among the components.
  return headers.map((name) => {
    const own = pick(examples, (example) => example.headers?.[name]);
    return own.examples === undefined
      ? { $ref: `#/components/parameters/${name}` }
      : { name, in: 'header', ...REQUEST_HEADERS[name], examples: { none: LEFT_OUT, ...own.examples } };
  });
}

function describeBody({ body, examples }: Operation) {
  if (body === undefined) return {};
  const types = { 'application/json': { name: body.name, schema: body.schema }, ...body.others };
  const content = Object.entries(types).map(([type, { name, schema }]) => [
    type,
    {
      schema: named(name, fromJoi(schema)),
      ...pick(examples, (example) => ((example.contentType ?? 'application/json') === type ? example.body : undefined)),
    },
  ]);
  return { requestBody: { required: body.kind !== 'optional-json', content: Object.fromEntries(content) as object } };
}

function describeAnswer(
  status: string,
  { description, content, headers = [] }: Answer,
  examples: Named<Example>,
  uniform: readonly string[],
) {
  const types = Object.entries(content ?? {}).map(([type, schema], index) => {
    const isOwn = ({ answerType }: Example) => (answerType === undefined ? index === 0 : answerType === type);
    const shown = pick(examples, (example) =>
      String(example.status) === status && isOwn(example) ? example.answer : undefined,
    );
    return [type, { schema, ...shown }];
  });
  return {
    description,
    headers: headersOf([...uniform, ...headers]),
    ...(types.length === 0 ? {} : { content: Object.fromEntries(types) as object }),
  };
}

function describeAnswers<Each extends Operation>(api: Api<Each>, endpoint: Each) {
  const { answers, examples } = endpoint;
  const uniform = [...api.headersOfStatus(200), ...(api.isIdempotent(endpoint) ? ['Idempotent-Replayed'] : [])];
  const groups = groupByStatus(api.errorsOf(endpoint)).map((group) => {
    const own = pick(examples, (example) => (example.status === group.status ? example.answer : undefined));
    const shared = { $ref: `#/components/responses/${nameOfGroup(group)}` };
    return [
      String(group.status),
      own.examples === undefined ? shared : describeErrorGroup(group, api.headersOfStatus, own.examples),
    ];
  });
  return Object.fromEntries([
    ...Object.entries(answers).map(([status, answer]) => [status, describeAnswer(status, answer, examples, uniform)]),
    ...groups,
  ]) as object;
}

export function describeOperation<Each extends Operation>(api: Api<Each>, name: string, endpoint: Each) {
  const { tag, summary, description, path, headers = [] } = endpoint;
  const parameters = [
    ...paramsOf(path).map((param) => ({ $ref: `#/components/parameters/${param}` })),
    ...queryParameters(endpoint),
    ...headerParameters([...(api.isIdempotent(endpoint) ? (['Idempotency-Key'] as const) : []), ...headers], endpoint),
  ];
  return {
    operationId: name,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...describeBody(endpoint),
    responses: describeAnswers(api, endpoint),
    security: api.securityOf(endpoint),
  };
}
