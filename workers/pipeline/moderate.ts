import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { moderationUnavailable, policyOf } from '../moderation/moderator.ts';
import type { Moderator } from '../moderation/moderator.ts';
import type { WorkerEmitter } from '../worker-events.ts';
import { Stopped } from './stage.ts';
import type { Claimed, Stage } from './stage.ts';

export interface ModerateDeps {
  moderator: Moderator;
  clock: Clock;
  events: WorkerEmitter;
}

/** Looks at the submitted messages before any provider sees them. Fails closed: no verdict, no answer. */
export function createModerate({ moderator, clock, events }: ModerateDeps): Stage<Claimed, Claimed> {
  return async (run) => {
    const { envelope, lease } = run;
    const { trace } = run.answer;
    const { backend } = moderator;
    const texts = envelope.request.messages.map((message) => message.content);
    const verdict = await moderator
      .check(texts, { policy: policyOf(envelope.tenant.moderation), signal: lease.signal })
      .catch((cause: unknown) => {
        if (lease.signal.reason instanceof Stopped) throw lease.signal.reason;
        trace.moderation = { backend, verdict: 'unavailable', categories: [] };
        throw moderationUnavailable(cause);
      });
    const categories = [...verdict.categories];
    trace.moderatedAt = clock.now();
    trace.moderation = { backend, verdict: verdict.flagged ? 'flagged_input' : 'passed', categories };
    if (!verdict.flagged) return run;
    events.emit('moderation.flagged', run, 'input', categories);
    throw new ServiceError(
      'content_policy_violation',
      `The messages were flagged by content moderation (${categories.join(', ')}); change them and try again.`,
    );
  };
}
