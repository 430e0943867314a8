import type { AttemptTrace, ModerationTrace, RequestTrace } from '../../shared/contracts/request-trace.ts';
import { Stopped } from '../pipeline/stage.ts';
import { ProviderError } from '../providers/provider.ts';
import { ProviderTimeout } from './attempt-clock.ts';

/** Why a call ended, in one word for the timeline: the provider's own text is not for the caller's eyes. */
function outcomeOf(error: unknown): string {
  if (error instanceof ProviderTimeout) return 'timeout';
  if (error instanceof ProviderError)
    return error.status === undefined ? 'connection_or_format' : `status_${error.status}`;
  return error instanceof Stopped ? error.reason : 'failed';
}

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
    noted.outcome = outcomeOf(error);
    throw error;
  } finally {
    noted.endedAt = now();
  }
}

/** Notes what came of the answer's moderation, which is the request's last verdict. */
export function noteVerdict(
  trace: RequestTrace,
  verdict: ModerationTrace['verdict'],
  categories: readonly string[],
): void {
  if (trace.moderation !== undefined) trace.moderation = { ...trace.moderation, verdict, categories: [...categories] };
}
