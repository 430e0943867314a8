import type { AttemptTrace, ModerationTrace, RequestTrace } from '../../../shared/contracts/request-trace.ts';
import { failureReason } from './classify-failure.ts';

/** Runs one provider call and notes it in the request's trace, however it ends. */
export async function traceProviderCall<T>(
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
    noted.outcome = failureReason(error);
    throw error;
  } finally {
    noted.endedAt = now();
  }
}

/** Notes the verdict on the answer, which is the request's last. */
export function noteVerdict(
  trace: RequestTrace,
  verdict: ModerationTrace['verdict'],
  categories: readonly string[],
): void {
  if (trace.moderation !== undefined) trace.moderation = { ...trace.moderation, verdict, categories: [...categories] };
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
