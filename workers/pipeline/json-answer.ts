import { Script, createContext } from 'node:vm';

import { Validator } from '@cfworker/json-schema';
import type { OutputUnit } from '@cfworker/json-schema';

import type { AnswerSchema, ChatMessage } from '../../shared/contracts/chat-request.ts';
import type { Usage } from '../../shared/contracts/events.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';

/**
 * Checks answers that must be JSON: in JSON mode an object, else one that fits the caller's schema
 * (docs/spec.md#structured-output). A caller's schema is hostile input. Ajv compiles it to code: 40 ms for 100
 * properties, more than a second for OpenAI's largest schema, and an exhausted stack for a flat one of that size. The
 * validator used here interprets it: 0.1 ms for an ordinary schema, 25 ms for the largest. Nested alternatives, and
 * patterns, can still take for ever, so it runs within a time limit, which also ends a regular expression.
 */

const FENCED = /^\s*```(?:json)?[ \t]*\r?\n([^]*?)```\s*$/i;

/** The JSON of an answer that encloses it in a code fence, as models often do although they were asked not to. */
export function withoutFence(text: string): string {
  const inside = FENCED.exec(text)?.[1]?.trim();
  return inside !== undefined && objectOf(inside) !== undefined ? inside : text;
}

/** Undefined: the text is no JSON object. */
function objectOf(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The event loop stands still for this long at most. The largest schema on the longest answer needs a quarter. */
const CHECK_MAX_MS = 100;
const FAULTS_MAX = 5;
/** Their errors only say that something inside is wrong. */
const OUTER_KEYWORDS: ReadonlySet<string> = new Set(['properties', 'items', 'false', '$ref']);

const room = createContext({ check: (): OutputUnit[] => [] });
const script = new Script('check()');

/** Every schema here was walked at admission, so one that cannot be applied takes too long, or repeats itself for ever. */
function cannotCheck(cause: unknown): ServiceError {
  return new ServiceError(
    'invalid_request',
    'The answer could not be checked against the schema in time; use fewer nested `anyOf`, references and patterns.',
    { cause, param: 'response_format.json_schema.schema', isFinal: true },
  );
}

/** Parts of an object that do not fit a schema, outermost first; empty: it fits. */
function faultsOf(value: object, { schema }: AnswerSchema): string[] {
  const isDraft7 = String(schema['$schema']).includes('draft-07');
  room['check'] = () => new Validator(schema, isDraft7 ? '7' : '2020-12').validate(value).errors;
  try {
    const errors = script.runInContext(room, { timeout: CHECK_MAX_MS }) as OutputUnit[];
    const inner = errors.filter(({ keyword }) => !OUTER_KEYWORDS.has(keyword));
    return (inner.length > 0 ? inner : errors).map(
      ({ instanceLocation, error }) => `${instanceLocation}: ${error.replace(/\.$/, '')}`,
    );
  } catch (error) {
    throw cannotCheck(error);
  } finally {
    room['check'] = undefined;
  }
}

/** Says why an answer is not the JSON that it must be, in a sentence for the model and the caller. Undefined: nothing. */
export function faultOf(text: string, schema: AnswerSchema | undefined): string | undefined {
  const value = objectOf(text);
  if (value === undefined) return 'The model gave no valid JSON object';
  const faults = schema === undefined ? [] : faultsOf(value, schema);
  if (faults.length === 0) return undefined;
  return `The answer does not fit the JSON schema (${faults.slice(0, FAULTS_MAX).join('; ')})`;
}

export class NotJsonError extends Error {
  override readonly name = 'NotJsonError';
  readonly usage: Usage;
  /** Shown to the caller only: it may quote the answer. */
  readonly fault: string;
  readonly text: string;

  constructor(usage: Usage, fault: string, text: string) {
    super('The answer is not the JSON that was asked for');
    this.usage = usage;
    this.fault = fault;
    this.text = text;
  }
}

/** 503 for a request whose answers are not the JSON that it asked for, not even the second one. */
export function noJson(cause: NotJsonError): ServiceError {
  return new ServiceError('model_unavailable', `${cause.fault}; try again.`, { cause, retryAfterSeconds: 1 });
}

export function schemaInstruction({ name, description, schema }: AnswerSchema): string {
  const about = description === undefined ? '' : ` (${description})`;
  return [
    'Answer with one JSON object and nothing else: no text before or after it, and no code fence around it.',
    `The object, \`${name}\`${about}, must fit this JSON schema:`,
    JSON.stringify(schema),
  ].join('\n');
}

export function repairOf({ text, fault }: NotJsonError): ChatMessage[] {
  if (text.trim() === '') return [];
  return [
    { role: 'assistant', content: text },
    { role: 'user', content: `${fault}. Answer again with the corrected JSON object alone.` },
  ];
}
