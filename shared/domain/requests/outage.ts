import { decodeEntry } from '../../contracts/events.ts';
import type { Terminal } from '../../contracts/events.ts';
import type { EndedAnswer } from '../../contracts/stored-answer.ts';
import type { ErrorCode } from '../../errors/codes.ts';

/** Errors that pass without the caller's doing: a provider, the moderation backend or a store fails, or time runs out. */
export const OUTAGE_CODES = ['model_unavailable', 'timeout'] as const satisfies readonly ErrorCode[];
export type OutageCode = (typeof OUTAGE_CODES)[number];

const isOutageCode = (code: ErrorCode | undefined): code is OutageCode =>
  OUTAGE_CODES.some((outage) => outage === code);

/** How the stream of a request ended, and whether it had text. */
export function endOf({ entries }: Pick<EndedAnswer, 'entries'>): { terminal: Terminal | undefined; hasText: boolean } {
  const stream = entries.map(({ lastSeq, payload }) => decodeEntry(lastSeq, payload));
  return { terminal: stream.at(-1)?.terminal, hasText: stream.some(({ deltas }) => deltas.length > 0) };
}

/**
 * The code of an end that says nothing about the request itself: it has no text, so no charge either, and the reason was
 * temporary. Undefined: any other end.
 */
export function outageOf({ terminal, hasText }: ReturnType<typeof endOf>): OutageCode | undefined {
  const code = terminal?.error?.code;
  return !hasText && isOutageCode(code) ? code : undefined;
}
