import type { AttemptTrace, RequestTrace } from '../../shared/contracts/request-trace.ts';
import { failureWord } from './failure-word.ts';

/** Runs one provider call and notes it in the request's trace, however it ends. */
export async function traceAttempt<T>(
  trace: RequestTrace,
  route: Pick<AttemptTrace, 'provider' | 'model'>,
  now: () => number,
  run: () => Promise<T>,
): Promise<T> {
  const noted: AttemptTrace = { ...route, startedAt: now(), endedAt: 0, outcome: 'ok' };
  trace.attempts.push(noted);
  try {
    return await run();
  } catch (error) {
    noted.outcome = failureWord(error);
    throw error;
  } finally {
    noted.endedAt = now();
  }
}

/** Notes a target that was not called, and why. */
export function traceSkipped(
  trace: RequestTrace,
  route: Pick<AttemptTrace, 'provider' | 'model'>,
  outcome: 'breaker_open',
  now: number,
): void {
  trace.attempts.push({ ...route, startedAt: now, endedAt: now, outcome });
}
