import { paramsOf } from '../contract/endpoints.ts';
import type { EndpointName, EndpointRule } from '../contract/endpoints.ts';
import { describeErrorGroup, groupByStatus, nameOfGroup } from './error-responses.ts';
import { errorsOf } from './errors.ts';
import { fromJoi } from './from-joi.ts';
import { headersOf, KEY_HEADERS, REQUEST_HEADERS } from './headers.ts';
import type { Answer, Example, Operation } from './operation.ts';
import { ref } from './schema.ts';
import type { JsonSchema } from './schema.ts';

type Named<T> = Readonly<Record<string, T>>;

/** Examples by name, without those that have nothing to say here. */
function pick<T>(examples: Named<Example>, valueOf: (example: Example) => T | undefined) {
  const found = Object.entries(examples).flatMap(([name, example]) => {
    const value = valueOf(example);
    if (value === undefined) return [];
    return [[name, { ...(example.summary === undefined ? {} : { summary: example.summary }), value }] as const];
  });
  return found.length === 0 ? {} : { examples: Object.fromEntries(found) };
}

function queryParameters({ query = [], examples }: Operation) {
  const schemas = Object.assign({}, ...query.map((schema) => fromJoi(schema)['properties'])) as Named<JsonSchema>;
  return Object.entries(schemas).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    ...(description === undefined ? {} : { description }),
    schema,
    ...pick(examples, (example) => example.query?.[name]),
  }));
}

/** The first example is what a page fills in by itself: no header. */
const LEFT_OUT = { summary: 'Left out', value: '' };

function headerParameters({ headers = [], examples }: Operation) {
  // A header without an example of its own is told of once, among the components.
  return headers.map((name) => {
    const own = pick(examples, (example) => example.headers?.[name]);
    return own.examples === undefined
      ? { $ref: `#/components/parameters/${name}` }
      : { name, in: 'header', ...REQUEST_HEADERS[name], examples: { none: LEFT_OUT, ...own.examples } };
  });
}

function describeBody({ body, examples }: Operation, { body: kind }: EndpointRule) {
  if (body === undefined) return {};
  const types = { 'application/json': ref(body.name), ...body.others };
  const content = Object.entries(types).map(([type, schema]) => [
    type,
    {
      schema,
      ...pick(examples, (example) => ((example.contentType ?? 'application/json') === type ? example.body : undefined)),
    },
  ]);
  return { requestBody: { required: kind !== 'optional-json', content: Object.fromEntries(content) as object } };
}

function describeAnswer(status: string, { description, content, headers = [] }: Answer, examples: Named<Example>) {
  const types = Object.entries(content ?? {}).map(([type, schema], index) => {
    const isOwn = ({ answerType }: Example) => (answerType === undefined ? index === 0 : answerType === type);
    const shown = pick(examples, (example) =>
      String(example.status) === status && isOwn(example) ? example.answer : undefined,
    );
    return [type, { schema, ...shown }];
  });
  return {
    description,
    headers: headersOf([...KEY_HEADERS, ...headers]),
    ...(types.length === 0 ? {} : { content: Object.fromEntries(types) as object }),
  };
}

function describeAnswers({ answers, examples, errors }: Operation, rule: EndpointRule) {
  const groups = groupByStatus(errorsOf(rule, errors)).map((group) => {
    const own = pick(examples, (example) => (example.status === group.status ? example.answer : undefined));
    const shared = { $ref: `#/components/responses/${nameOfGroup(group)}` };
    return [String(group.status), own.examples === undefined ? shared : describeErrorGroup(group, own.examples)];
  });
  return Object.fromEntries([
    ...Object.entries(answers).map(([status, answer]) => [status, describeAnswer(status, answer, examples)]),
    ...groups,
  ]) as object;
}

/** An endpoint as the document has it: made from its row, and from what is told of it. */
export function describeOperation(name: EndpointName, rule: EndpointRule, operation: Operation) {
  const { tag, summary, description } = operation;
  const scopes = rule.scopes === 'any' ? [[]] : rule.scopes.map((scope) => [scope]);
  const parameters = [
    ...paramsOf(rule.path).map((param) => ({ $ref: `#/components/parameters/${param}` })),
    ...queryParameters(operation),
    ...headerParameters(operation),
  ];
  return {
    operationId: name,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...describeBody(operation, rule),
    responses: describeAnswers(operation, rule),
    security: scopes.map((granted) => ({ ApiKey: granted })),
  };
}
