import { BATCH_LIMITS } from '../../shared/contracts/batches.ts';
import type { RequestTrace } from '../../shared/contracts/request-trace.ts';
import type { LineRetry } from '../../shared/infra/mongo/batches/batch-lines.ts';

const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 60_000;

/** When the latest call began that a provider answered; undefined: none did. */
export function answeredAt(trace: RequestTrace | undefined): number | undefined {
  const answered = (trace?.attempts ?? []).filter(({ outcome }) => outcome === 'ok');
  return answered.length === 0 ? undefined : Math.max(...answered.map(({ startedAt }) => startedAt));
}

/** How far a pause may be off its double, either way. */
const SPREAD = 0.25;

/** Whether the next try may begin. One that seems farther away than any pause was set before the clock was put back. */
export function isDue({ dueAt }: Pick<LineRetry, 'dueAt'>, now: number): boolean {
  return dueAt <= now || dueAt - now > BACKOFF_MAX_MS * (1 + SPREAD);
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
  return { tries, faults, failedAt: now, dueAt: now + Math.round(backoffMs * (1 - SPREAD + 2 * SPREAD * random)) };
}
