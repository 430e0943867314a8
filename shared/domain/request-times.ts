import { decodeEntry } from '../contracts/events.ts';
import type { Terminal } from '../contracts/events.ts';
import type { EndedAnswer } from '../contracts/jobs.ts';
import type { ErrorCode } from '../errors/codes.ts';

/**
 * Clocks of processes and servers agree to within this. A time further apart, or ahead, means that a clock was set
 * (docs/decisions/0005-fencing-and-leases.md).
 */
export const CLOCKS_APART_MS = 1_000;

/** `seq`, the order of acceptance, is a time in microseconds (admit.lua); other times here are milliseconds. */
const SEQ_PER_MS = 1_000;

/** The first place in the order of acceptance for a request of this moment. */
export function seqAt(timeMs: number): number {
  return timeMs * SEQ_PER_MS;
}

export function timeOfSeq(seq: number): number {
  return seq / SEQ_PER_MS;
}

/** These pass without the caller's doing: a provider, the moderation backend or a store fails, or time runs out. */
export const OUTAGE_CODES = ['model_unavailable', 'timeout'] as const satisfies readonly ErrorCode[];
export type OutageCode = (typeof OUTAGE_CODES)[number];

const isOutageCode = (code: ErrorCode | undefined): code is OutageCode =>
  OUTAGE_CODES.some((outage) => outage === code);

export function endOf({ entries }: Pick<EndedAnswer, 'entries'>): { terminal: Terminal | undefined; hasText: boolean } {
  const stream = entries.map(({ lastSeq, payload }) => decodeEntry(lastSeq, payload));
  return { terminal: stream.at(-1)?.terminal, hasText: stream.some(({ deltas }) => deltas.length > 0) };
}

/**
 * The code of an end that says nothing about the request itself: no text, so no charge, and a temporary reason.
 * Undefined: any other end; where a model gives no JSON, for example, another run is no remedy.
 */
export function outageOf({ terminal, hasText }: ReturnType<typeof endOf>): OutageCode | undefined {
  const code = terminal?.error?.code;
  return !hasText && isOutageCode(code) && terminal?.trace?.reason !== 'not_json' ? code : undefined;
}
