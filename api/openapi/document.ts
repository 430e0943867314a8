import { BUILD } from '../../shared/config/load-config.ts';
import type { Operation } from '../contract/endpoint.ts';
import { errorSchema, namedSchemasIn } from '../contract/json-schema.ts';
import { REQUEST_HEADERS } from '../contract/headers.ts';
import { PATH_PARAMETERS, templateOf, wireName } from '../contract/path-parameters.ts';
import { ERRORS } from '../../shared/errors/codes.ts';
import { toErrorObject } from '../../shared/errors/error-body.ts';
import { describeOperation } from './describe-operation.ts';
import type { Api } from './describe-operation.ts';
import { describeErrorGroup, groupByStatus, nameOfGroup } from './error-responses.ts';
import type { ErrorGroup } from './error-responses.ts';

type Components = Record<string, Record<string, object>>;

/** The parts of an OpenAPI 3.1 document that this project reads. */
export interface OpenApiDocument {
  openapi: string;
  info: object;
  servers: { url: string }[];
  tags: object[];
  paths: Record<string, object>;
  webhooks: Record<string, object>;
  components: Components;
}

function describePaths<Each extends Operation>(api: Api<Each>): Record<string, object> {
  const paths: Record<string, Record<string, object>> = {};
  for (const [name, endpoint] of Object.entries(api.endpoints)) {
    const item = (paths[templateOf(endpoint.path)] ??= {});
    item[endpoint.method.toLowerCase()] = describeOperation(api, name, endpoint);
  }
  return { ...paths, ...api.otherPaths };
}

function errorResponses<Each extends Operation>(api: Api<Each>, groups: readonly ErrorGroup[]): Record<string, object> {
  return Object.fromEntries(
    groups.map((group) => [nameOfGroup(group), describeErrorGroup(group, api.headersOfStatus)]),
  );
}

function describeParameters(): Record<string, object> {
  const path = Object.entries(PATH_PARAMETERS).map(([name, { description, schema, example }]) => [
    name,
    { name: wireName(name), in: 'path', required: true, description, schema, example },
  ]);
  const headers = Object.entries(REQUEST_HEADERS).map(([name, header]) => [name, { name, in: 'header', ...header }]);
  return Object.fromEntries([...path, ...headers]) as Record<string, object>;
}

function errorExamples(groups: readonly ErrorGroup[]): Record<string, object> {
  const requestId = PATH_PARAMETERS.requestId.example;
  return Object.fromEntries(
    [...new Set(groups.flatMap(({ codes }) => codes))].map((code) => {
      const message = ERRORS[code].meaning;
      return [code, { summary: message, value: { error: toErrorObject({ code, message }, requestId) } }];
    }),
  );
}

const COMPONENT = /^#\/components\/([^/]+)\/(.+)$/;

/** Adds to `kept` all components that `value` refers to, directly or through others. */
function keepReferred(value: unknown, components: Components, kept: Components): void {
  if (typeof value !== 'object' || value === null) return;
  if ('$ref' in value && typeof value.$ref === 'string') {
    const [, kind = '', name = ''] = COMPONENT.exec(value.$ref) ?? [];
    const component = components[kind]?.[name];
    const ofKind = (kept[kind] ??= {});
    if (component === undefined || Object.hasOwn(ofKind, name)) return;
    ofKind[name] = component;
    keepReferred(component, components, kept);
  }
  for (const part of Object.values(value)) keepReferred(part, components, kept);
}

/** Deterministic. Throws on anything it cannot describe (docs/decisions/0022-openapi-document.md). */
export function describeApi<Each extends Operation>(api: Api<Each>): OpenApiDocument {
  const { title, summary, description, server, tags, webhooks, securitySchemes } = api;
  const paths = describePaths(api);
  const groups = Object.values(api.endpoints).flatMap((endpoint) => groupByStatus(api.errorsOf(endpoint)));
  const all: Components = {
    schemas: Object.fromEntries(namedSchemasIn([errorSchema, paths, webhooks])),
    parameters: describeParameters(),
    headers: { ...api.headers },
    responses: errorResponses(api, groups),
    examples: errorExamples(groups),
  };
  const components: Components = {};
  keepReferred([paths, webhooks], all, components);
  return {
    openapi: '3.1.0',
    info: { title, version: BUILD.version, summary, description, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: server }],
    tags: Object.entries(tags).map(([name, about]) => ({ name, description: about })),
    paths,
    webhooks,
    components: { ...components, securitySchemes },
  };
}
