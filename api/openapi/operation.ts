import type Joi from 'joi';

import type { EndpointName } from '../contract/endpoints.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';
import type { RequestHeaderName, ResponseHeaderName } from './headers.ts';
import type { JsonSchema } from './schema.ts';

/** The groups of the document, in its order. */
export const TAGS = {
  Chat: 'Complete and streamed answers, and what became of them.',
  Models: 'The model tiers.',
  Batches: 'Many requests at once, answered within 24 hours.',
  Keys: 'API keys of the tenant.',
  Entities: 'Whom a conversation is with, and what is remembered of it.',
  Usage: 'What was used, by time, key, model and entity.',
  Billing: 'Credits: balance, packages, purchases, every booking.',
  Webhooks: 'Addresses that are told what happens.',
  Compliance: 'Audit log, export and deletion of data.',
  Service: 'The service itself; no key is needed.',
} as const;
type Tag = keyof typeof TAGS;

/** A successful answer. */
export interface Answer {
  description: string;
  /** By content type; absent: no body. */
  content?: Readonly<Record<string, JsonSchema>>;
  headers?: readonly ResponseHeaderName[];
}

/**
 * A call that works as it stands, on a tenant of its own, and how it is answered: both are in the document, and a test
 * sends it. Parameters of the path have examples of their own.
 */
export interface Example {
  summary?: string;
  query?: Readonly<Record<string, string | number | readonly string[]>>;
  headers?: Partial<Readonly<Record<RequestHeaderName, string>>>;
  /** Of the first content type, or of the one that `contentType` names. */
  body?: unknown;
  contentType?: string;
  status: number;
  /** A possible answer: ids, times and texts differ from call to call. */
  answer?: unknown;
  /** Where the endpoint has several. */
  answerType?: string;
}

interface RequestBody {
  /** Its name among the document's schemas. */
  name: string;
  /** The very schema that validates. */
  schema: Joi.Schema;
  /** Of other content types than JSON. */
  others?: Readonly<Record<string, JsonSchema>>;
}

/** What the document tells of an endpoint beyond its row in `ENDPOINTS`. */
export interface Operation {
  tag: Tag;
  summary: string;
  description?: string;
  /** The schemas that read the query string, joined. */
  query?: readonly Joi.ObjectSchema[];
  headers?: readonly RequestHeaderName[];
  body?: RequestBody;
  answers: Readonly<Record<number, Answer>>;
  /** Errors that do not follow from the row (errors.ts). */
  errors?: readonly ErrorCode[];
  /** The first one is named after the endpoint's purpose; names are unique within an operation. */
  examples: Readonly<Record<string, Example>>;
}

/** The operations of a family of routes, beside which they stand. */
export type OperationsOf<Name extends EndpointName> = Readonly<Record<Name, Operation>>;

/** JSON, as nearly every answer is. */
export function json(description: string, schema: JsonSchema, headers: readonly ResponseHeaderName[] = []): Answer {
  return { description, content: { 'application/json': schema }, ...(headers.length === 0 ? {} : { headers }) };
}
