import type { Header } from '../contract/headers.ts';
import type { Operation } from '../contract/operation.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';

/** An API to be described: the public one, or the administration. */
export interface Api<Each extends Operation> {
  title: string;
  summary: string;
  description: string;
  /** The path below which the endpoints are. */
  server: string;
  /** Groups of endpoints, in the order of the document, with what they are about. */
  tags: Readonly<Record<string, string>>;
  /** By operation id. */
  endpoints: Readonly<Record<string, Each>>;
  /** Headers of answers, by name. */
  headers: Readonly<Record<string, Header>>;
  /** Those that every answer of a status has. */
  headersOfStatus: (status: number) => readonly string[];
  errorsOf: (endpoint: Each) => readonly ErrorCode[];
  /** Whether an `Idempotency-Key` has an effect. */
  isIdempotent: (endpoint: Each) => boolean;
  securityOf: (endpoint: Each) => readonly object[];
  securitySchemes: Readonly<Record<string, object>>;
  /** Paths beside the endpoints. */
  otherPaths: Readonly<Record<string, object>>;
  webhooks: Readonly<Record<string, object>>;
}
