import addFormats from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ValidateFunction } from 'ajv/dist/2020.js';

import { endpointsOf, pointerOf } from './read-document.ts';
import type { Endpoint, PlacedResponse, Schema, ServedDocument } from './read-document.ts';

/** An answer as it came over the wire. */
export interface WireAnswer {
  status: number;
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>;
  text: string;
}

const ROOT = 'openapi';
const INTEGER = /^\d+$/;
const REQUEST_ID = /^req_[0-9A-Za-z]{24}$/;

/** Objects that name their fields have no others here: a field that the document does not tell of is a fault. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const entries = Object.entries(schema).map(
    ([name, value]) => [name, name === 'examples' ? value : closed(value)] as const,
  );
  const { type, properties, additionalProperties } = schema as Schema;
  const isNamed = type === 'object' && properties !== undefined && additionalProperties === undefined;
  return { ...Object.fromEntries(entries), ...(isNamed ? { additionalProperties: false } : {}) };
}

export interface AnswerChecker {
  /** Everything in which an answer differs from what the document says; nothing: it is as it should be. */
  check(endpoint: Endpoint, answer: WireAnswer): string[];
  /** As of an answer that comes before any endpoint: the form of every error. */
  checkError(answer: WireAnswer): string[];
  /** What speaks against a value of a part of the document; `pointer` names its schema. */
  validate(pointer: string, value: unknown): string[];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface ReadValues {
  values: unknown[];
  /** What is wrong with the form around them. */
  faults: string[];
}

/** The chunks of a stream. */
function readEvents(text: string): ReadValues {
  const blocks = text
    .replaceAll(/^:.*\n/gm, '')
    .split('\n\n')
    .filter((block) => block !== '');
  const faults: string[] = [];
  const values = blocks.flatMap((block) => {
    const data = /^(?:id: \d+\n)?data: ([^\n]*)$/.exec(block)?.[1];
    if (data === undefined) faults.push(`an event is more than an id and one line of data: ${block.slice(0, 80)}`);
    return data === undefined || data === '[DONE]' ? [] : [parse(data)];
  });
  return { values, faults };
}

/** What a content type's schema is of: the body, or each part of a sequence. */
function readValues(type: string, text: string): ReadValues {
  switch (type) {
    case 'text/event-stream':
      return readEvents(text);
    case 'application/x-ndjson': {
      const lines = text.split('\n');
      const faults = lines.at(-1) === '' ? [] : ['the last line does not end'];
      return { values: lines.slice(0, -1).map(parse), faults };
    }
    default:
      return { values: [parse(text)], faults: [] };
  }
}

function headerFaults({ status, headers, text }: WireAnswer, hasLimits: boolean): string[] {
  const faults: string[] = [];
  if (!REQUEST_ID.test(headers['x-request-id'] ?? '')) faults.push('no X-Request-Id');
  for (const part of hasLimits ? ['limit', 'remaining', 'reset'] : [])
    if (!INTEGER.test(headers[`x-ratelimit-${part}-requests`] ?? ''))
      faults.push(`no X-RateLimit of requests: ${part}`);
  const waits = status === 429 || (status === 503 && text.startsWith('{"error"'));
  if (waits && !/^[1-9]\d*$/.test(headers['retry-after'] ?? '')) faults.push('no Retry-After');
  return faults;
}

function nameError(error: { instancePath: string; message?: string; params: object }): string {
  return `${error.instancePath} ${error.message ?? ''} ${JSON.stringify(error.params)}`;
}

export function createAnswerChecker(document: ServedDocument): AnswerChecker {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, validateSchema: false });
  // The package is CommonJS: its types put the function behind `default`, and so does Node.js.
  addFormats.default(ajv);
  // The document as a whole is a schema to ajv, that of anything.
  ajv.addVocabulary(Object.keys(document));
  ajv.addSchema(closed(document) as object, ROOT);
  const compiled = new Map<string, ValidateFunction>();
  const hasLimits = document.components['headers']?.['X-RateLimit-Limit-Requests'] !== undefined;

  function validate(pointer: string, value: unknown): string[] {
    let check = compiled.get(pointer);
    if (check === undefined) {
      check = ajv.compile({ $ref: `${ROOT}#${pointer}` });
      compiled.set(pointer, check);
    }
    return check(value) ? [] : (check.errors ?? []).map(nameError);
  }

  function checkError({ status, headers, text }: WireAnswer): string[] {
    const body = parse(text);
    const faults = validate('/components/schemas/Error', body);
    if (faults.length > 0) return [`the error of ${status} is not the uniform one: ${faults.join('; ')}`];
    const { error } = body as { error: { request_id: string } };
    return error.request_id === headers['x-request-id'] ? [] : ['request_id differs from X-Request-Id'];
  }

  function contentFaults(response: PlacedResponse, { headers, text }: WireAnswer): string[] {
    const type = (headers['content-type'] ?? '').split(';')[0] ?? '';
    if (response.content === undefined) return text === '' ? [] : [`a body where the document has none`];
    if (response.content[type] === undefined) return [`content type ${type} is not in the document`];
    const schema = response.pointer + pointerOf('content', type, 'schema');
    const { values, faults } = readValues(type, text);
    return [...faults, ...values.flatMap((value) => validate(schema, value))];
  }

  function check({ responses }: Endpoint, answer: WireAnswer): string[] {
    const { status } = answer;
    const response = responses[status];
    const faults = headerFaults(answer, hasLimits);
    if (response === undefined) {
      return [...faults, ...checkError(answer), `${status} is not in the document: ${answer.text.slice(0, 200)}`];
    }
    const codes = response['x-error-codes'];
    if (codes === undefined) return [...faults, ...contentFaults(response, answer)];
    faults.push(...checkError(answer));
    const code = (parse(answer.text) as { error?: { code?: string } } | undefined)?.error?.code ?? '';
    return codes.includes(code) ? faults : [...faults, `${code} is not in the document for ${status}`];
  }

  return { check, checkError: (answer) => [...headerFaults(answer, hasLimits), ...checkError(answer)], validate };
}

/** The operations of a document by their ids. */
export function endpointsById(document: ServedDocument): ReadonlyMap<string, Endpoint> {
  return new Map(endpointsOf(document).map((endpoint) => [endpoint.id, endpoint]));
}
