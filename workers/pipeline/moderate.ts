import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { moderationUnavailable, policyOf } from '../moderation/moderator.ts';
import type { ModerationVerdict, Moderator } from '../moderation/moderator.ts';
import { readingsOf, readingsOfContext } from '../moderation/prompt-readings.ts';
import type { WorkerEmitter } from './worker-events.ts';
import type { ContextValue } from './context-instruction.ts';
import { Stopped } from './stage.ts';
import type { Assembled, Stage } from './stage.ts';

export interface ModerateDeps {
  moderator: Moderator;
  clock: Clock;
  events: WorkerEmitter;
}

/** What the caller can do about a flagged value, by its origin. */
const REMEDIES: Record<ContextValue['origin'], string> = {
  request: 'change it and try again',
  entity: 'change the entity and try again',
  tenant: 'ask the administrator to change it, or send another one',
};

function refusalOfMessages(categories: string): ServiceError {
  return new ServiceError(
    'content_policy_violation',
    `The messages were flagged by content moderation (${categories}); change them and try again.`,
  );
}

function refusalOfValue({ field, origin }: ContextValue, categories: string): ServiceError {
  const whose = origin === 'request' ? 'The' : `The ${origin}'s`;
  return new ServiceError(
    'content_policy_violation',
    `${whose} ${field} was flagged by content moderation (${categories}); ${REMEDIES[origin]}.`,
    { param: field },
  );
}

/** Checks all that a model would read, before any provider sees it. Fails closed: no verdict, no answer. */
export function createModerate({ moderator, clock, events }: ModerateDeps): Stage<Assembled, Assembled> {
  function check(run: Assembled, texts: readonly string[]): Promise<ModerationVerdict> {
    const { signal } = run.lease;
    const policy = policyOf(run.envelope.tenant.moderation);
    return moderator.check(texts, { policy, signal }).catch((cause: unknown) => {
      if (signal.reason instanceof Stopped) throw signal.reason;
      run.answer.trace.moderation = { backend: moderator.backend, verdict: 'unavailable', categories: [] };
      throw moderationUnavailable(cause);
    });
  }

  /** Finds out which part of a flagged prompt was the reason. */
  async function refusalOf(run: Assembled, flagged: readonly string[]): Promise<ServiceError> {
    const { context, prompt } = run;
    const values = context.map(({ text }) => text);
    const categories = flagged.join(', ');
    const verdict = await check(run, readingsOfContext({ instruction: prompt.instruction, values }));
    if (!verdict.flagged) return refusalOfMessages(categories);
    for (const value of context.slice(1)) {
      const alone = await check(run, [`${value.field}: ${value.text}`]);
      if (alone.flagged) return refusalOfValue(value, categories);
    }
    const [first] = context;
    return first === undefined ? refusalOfMessages(categories) : refusalOfValue(first, categories);
  }

  return async (run) => {
    const { envelope, context, prompt } = run;
    const { trace } = run.answer;
    const { messages } = envelope.request;
    const values = context.map(({ text }) => text);
    const verdict = await check(run, readingsOf({ ...prompt, values, messages }));
    const categories = [...verdict.categories];
    trace.moderatedAt = clock.now();
    const result = verdict.flagged ? 'flagged_input' : 'passed';
    trace.moderation = { backend: moderator.backend, verdict: result, categories };
    if (!verdict.flagged) return run;
    events.emit('moderation.flagged', run, 'input', categories);
    throw await refusalOf(run, categories);
  };
}
