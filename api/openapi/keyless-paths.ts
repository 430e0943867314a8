import { headersOf, UNIFORM_HEADERS } from '../contract/headers.ts';
import type { ResponseHeaderName } from '../contract/headers.ts';
import { constant, object, text } from '../contract/json-schema.ts';
import type { JsonSchema } from '../contract/json-schema.ts';

/** Served at the root of the host, not below the API's path. */
const AT_ROOT = [{ url: '/', description: 'The root of the host.' }];

interface KeylessAnswer {
  description: string;
  schema: JsonSchema;
  example: unknown;
  headers?: readonly ResponseHeaderName[];
}

interface KeylessOperation {
  operationId: string;
  summary: string;
  answers: Readonly<Record<number, KeylessAnswer>>;
}

const checks: JsonSchema = {
  type: 'object',
  description: 'What keeps the ingress from serving, by name; empty where nothing does.',
  additionalProperties: text(),
};

/** Paths that need no key and are not endpoints; test/api/http/openapi.test.ts compares them with the app. */
const KEYLESS: Readonly<Record<string, KeylessOperation>> = {
  '/health/live': {
    operationId: 'getLiveness',
    summary: 'Check liveness',
    answers: {
      200: {
        description: 'The process is running.',
        schema: object({ status: constant('ok'), version: text(), commit: text() }),
        example: { status: 'ok', version: '0.1.0', commit: '801118b4' },
      },
    },
  },
  '/health/ready': {
    operationId: 'getReadiness',
    summary: 'Check readiness',
    answers: {
      200: {
        description: 'The ingress takes requests. A store may be away.',
        schema: object({ status: constant('ok'), checks }),
        example: { status: 'ok', checks: {} },
      },
      503: {
        description: 'The ingress is starting or stopping.',
        schema: object({ status: constant('unavailable'), checks }),
        example: { status: 'unavailable', checks: { process: 'it is starting' } },
      },
    },
  },
  '/openapi.json': {
    operationId: 'getDocument',
    summary: 'Retrieve this document',
    answers: {
      200: {
        description: 'The same as at `/platform/v1/openapi.json`.',
        schema: { ...object({ openapi: text() }), additionalProperties: true },
        example: { openapi: '3.1.0', info: {}, paths: {} },
        headers: ['ETag'],
      },
    },
  },
};

function describeAnswer({ description, schema, example, headers = [] }: KeylessAnswer) {
  return {
    description,
    headers: headersOf([...Object.keys(UNIFORM_HEADERS), ...headers]),
    content: { 'application/json': { schema, examples: { state: { value: example } } } },
  };
}

/** Describes what is served without a key. */
export function describeKeylessPaths() {
  return Object.fromEntries(
    Object.entries(KEYLESS).map(([path, { operationId, summary, answers }]) => [
      path,
      {
        servers: AT_ROOT,
        get: {
          operationId,
          summary,
          tags: ['Service'],
          security: [],
          responses: Object.fromEntries(
            Object.entries(answers).map(([status, answer]) => [status, describeAnswer(answer)]),
          ),
        },
      },
    ]),
  );
}
