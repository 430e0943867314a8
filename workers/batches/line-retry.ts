import { BATCH_LIMITS } from '../../shared/contracts/batches.ts';
import { decodeEntry } from '../../shared/contracts/events.ts';
import type { Terminal } from '../../shared/contracts/events.ts';
import type { EndedAnswer } from '../../shared/contracts/kept-answer.ts';
import type { RequestTrace } from '../../shared/contracts/request-trace.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';
import type { LineRetry } from '../../shared/infra/mongo/batches/batch-repository.ts';

/** What comes back without the caller: a provider, the moderation backend, time. */
const PASSING: ReadonlySet<ErrorCode> = new Set(['model_unavailable', 'timeout']);

const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 60_000;

/** How the stream of a line's request ended, and whether it had text. */
export function endOf({ entries }: Pick<EndedAnswer, 'entries'>): { terminal: Terminal | undefined; hasText: boolean } {
  const stream = entries.map(({ lastSeq, payload }) => decodeEntry(lastSeq, payload));
  return { terminal: stream.at(-1)?.terminal, hasText: stream.some(({ deltas }) => deltas.length > 0) };
}

/** Whether a try says nothing about its line: it has no text, so no charge either, and failed for a passing reason. */
export function isPassing({ terminal, hasText }: ReturnType<typeof endOf>): boolean {
  return !hasText && terminal?.error !== undefined && PASSING.has(terminal.error.code);
}

/** When the latest call began that a provider answered; undefined: none did. */
export function answeredAt(trace: RequestTrace | undefined): number | undefined {
  const answered = (trace?.attempts ?? []).filter(({ outcome }) => outcome === 'ok');
  return answered.length === 0 ? undefined : Math.max(...answered.map(({ startedAt }) => startedAt));
}

/**
 * What follows a failed try: when the next one is due, or undefined: the line is given up. `isOwnFault`: the provider
 * answers others meanwhile, or has answered this line without use. `random` is from 0 to 1.
 */
export function nextRetry(
  last: LineRetry | undefined,
  { isOwnFault, now, random }: { isOwnFault: boolean; now: number; random: number },
): LineRetry | undefined {
  const tries = (last?.tries ?? 0) + 1;
  const faults = (last?.faults ?? 0) + (isOwnFault ? 1 : 0);
  if (faults >= BATCH_LIMITS.triesMax) return undefined;
  const backoffMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** (tries - 1));
  return { tries, faults, failedAt: now, dueAt: now + Math.round(backoffMs * (0.75 + random / 2)) };
}
