import { BATCH_LIMITS } from '../../shared/contracts/batches.ts';
import type { RequestTrace } from '../../shared/contracts/request-trace.ts';
import type { LineRetry } from '../../shared/infra/mongo/batches/batch-lines.ts';

const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 60_000;

/** When the latest successful provider call began; undefined: none succeeded. */
export function answeredAt(trace: RequestTrace | undefined): number | undefined {
  const answered = (trace?.attempts ?? []).filter(({ outcome }) => outcome === 'ok');
  return answered.length === 0 ? undefined : Math.max(...answered.map(({ startedAt }) => startedAt));
}

/** The random spread of a pause, as a fraction either way. */
const SPREAD = 0.25;

/** Whether the next try may begin. A due time farther ahead than any pause was set before the clock was set back. */
export function isDue({ dueAt }: Pick<LineRetry, 'dueAt'>, now: number): boolean {
  return dueAt <= now || dueAt - now > BACKOFF_MAX_MS * (1 + SPREAD);
}

/**
 * What follows a failed try: when the next one is due; undefined: the line is given up. `isOwnFault`: the provider is
 * answering other lines, or its answer to this line was unusable. `random` is from 0 to 1.
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
