import type { IdempotencyName } from './jobs.ts';
import type { KeyMode } from './space.ts';

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
