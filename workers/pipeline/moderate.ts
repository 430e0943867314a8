import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { moderationUnavailable, policyOf } from '../moderation/moderator.ts';
import type { Moderator } from '../moderation/moderator.ts';
import { Stopped } from './stage.ts';
import type { Claimed, Stage } from './stage.ts';

export interface ModerateDeps {
  moderator: Moderator;
  clock: Clock;
  onFlagged: (category: string) => void;
  log: Logger;
}

/** Looks at the submitted messages before any provider sees them. Fails closed: no verdict, no answer. */
export function createModerate({ moderator, clock, onFlagged, log }: ModerateDeps): Stage<Claimed, Claimed> {
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
    for (const category of categories) onFlagged(category);
    log.info('A request was refused by moderation.', {
      requestId: envelope.requestId,
      tenantId: envelope.tenantId,
      categories,
    });
    throw new ServiceError(
      'content_policy_violation',
      `The messages were flagged by content moderation (${categories.join(', ')}); change them and try again.`,
    );
  };
}
