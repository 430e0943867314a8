import { TIERS } from './chat-request.ts';
import type { ChatRequest } from './chat-request.ts';
import type { IdempotencyName, RequestEnvelope } from './jobs.ts';
import { isRecord } from './parse.ts';
import { KEY_MODES } from './space.ts';
import type { KeyMode } from './space.ts';

/** Stored data does not have the shape that this version of the code reads. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}

const TIER_NAMES: ReadonlySet<unknown> = new Set(TIERS);
const MODE_NAMES: ReadonlySet<unknown> = new Set(KEY_MODES);

/**
 * Whether this is what the service itself has stored, and not damaged: limits and other fields were checked before that.
 * Newer code may store more.
 */
function isRequest(value: unknown): boolean {
  if (!isRecord(value) || !Array.isArray(value['messages']) || typeof value['maxTokens'] !== 'number') return false;
  return value['messages'].every((message) => isRecord(message) && typeof message['content'] === 'string');
}

function isEnvelope(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value['requestId'] === 'string' &&
    typeof value['tenantId'] === 'string' &&
    typeof value['keyId'] === 'string' &&
    MODE_NAMES.has(value['mode']) &&
    TIER_NAMES.has(value['tier']) &&
    typeof value['acceptedAt'] === 'number' &&
    typeof value['retentionMs'] === 'number' &&
    isRecord(value['tenant']) &&
    isRequest(value['request'])
  );
}

/** Shows nothing of what is stored: it is the caller's text. */
function read(json: string, what: string, isReadable: (value: unknown) => boolean): unknown {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new UnreadableError(`${what} is not JSON.`);
  }
  if (!isReadable(value)) throw new UnreadableError(`${what} is not as this version stores it.`);
  return value;
}

/** The published name under which a request was asked for. Undefined: none, or that of its tier. */
export function nameOf({ tier, request: { model } }: { tier: string; request: ChatRequest }): string | undefined {
  return model === tier ? undefined : model;
}

/** The body of a request, as the ingress stored it. Throws an UnreadableError. */
export function parseEnvelope(json: string): RequestEnvelope {
  // The service has written it.
  return read(json, 'The body of the request', isEnvelope) as RequestEnvelope;
}

/** The request of a batch's line. Throws an UnreadableError. */
export function parseStoredRequest(json: string): ChatRequest {
  // The service has written it.
  return read(json, 'The line', isRequest) as ChatRequest;
}

/**
 * An ended request as Redis has it: the fields of its record that a reader needs, and the entries of its stream. Once
 * restored, it reads the same, byte for byte.
 */
export interface EndedAnswer {
  requestId: string;
  tenantId: string;
  fields: Record<string, string>;
  /** Last sequence number and payload of each entry, in order (shared/contracts/events.ts). */
  entries: { lastSeq: number; payload: string }[];
}

/** An answer that may be asked for again for a day (docs/spec.md#retention). */
export interface StoredAnswer extends EndedAnswer {
  mode: KeyMode;
  entityId?: string;
  /** Undefined: the request was asynchronous, or its key does not remember it because it ended without an answer. */
  idempotency?: IdempotencyName;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

/** Answers asked for with an Idempotency-Key or asynchronously are stored for a day (docs/spec.md#retention). */
export const STORED_ANSWER_MS = 24 * 3_600_000;

/** Until when the answer stands for its Idempotency-Key, however long it is kept. Milliseconds since the epoch. */
export function namedUntil({ fields }: Pick<EndedAnswer, 'fields'>): number {
  return Number(fields['acceptedAt']) + STORED_ANSWER_MS;
}
