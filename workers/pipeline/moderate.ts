import { textsBeside } from '../../shared/contracts/message-text.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { MODERATION_CATEGORIES, moderationUnavailable, policyOf } from '../moderation/moderator.ts';
import type { ModerationVerdict, Moderator } from '../moderation/moderator.ts';
import { readingsOf, readingsOfContext, readingsOfInputs } from '../moderation/prompt-readings.ts';
import type { WorkerEmitter } from './worker-events.ts';
import type { ContextValue } from './context-instruction.ts';
import { Stopped } from './stage.ts';
import type { Assembled, Claimed, Outcome, Stage } from './stage.ts';

export interface ModerateDeps {
  moderator: Moderator;
  clock: Clock;
  events: WorkerEmitter;
}

/** Tells what the caller can do about a flagged value, by its origin. */
const REMEDIES: Record<ContextValue['origin'], string> = {
  request: 'change it and try again',
  entity: 'change the entity and try again',
  tenant: 'ask the administrator to change it, or send another one',
};

function refusalOfMessages(categories: string, what: 'messages were' | 'input was'): ServiceError {
  return new ServiceError(
    'content_policy_violation',
    `The ${what} flagged by content moderation (${categories}); change ${what === 'input was' ? 'it' : 'them'} and try again.`,
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

type Check = (run: Claimed, texts: readonly string[]) => Promise<ModerationVerdict>;

/** Fails closed: no verdict, no answer. */
function createCheck(moderator: Moderator): Check {
  return (run, texts) => {
    const { signal } = run.lease;
    const policy = policyOf(run.envelope.tenant.moderation);
    return moderator.check(texts, { policy, signal }).catch((cause: unknown) => {
      if (signal.reason instanceof Stopped) throw signal.reason;
      run.answer.trace.moderation = { backend: moderator.backend, verdict: 'unavailable', categories: [] };
      throw moderationUnavailable(cause);
    });
  };
}

/** Of OpenAI's endpoint; a server may know others. */
const CATEGORIES: readonly string[] = [...new Set<string>(MODERATION_CATEGORIES)]
  .filter((category) => category !== 'test')
  .concat('hate/threatening', 'self-harm/intent', 'violence/graphic')
  .sort();

function toResult({ flagged, categories, scores }: ModerationVerdict) {
  const names = [...new Set([...CATEGORIES, ...Object.keys(scores), ...categories])];
  return {
    flagged,
    categories: Object.fromEntries(names.map((name) => [name, categories.includes(name)])),
    category_scores: Object.fromEntries(names.map((name) => [name, scores[name] ?? 0])),
  };
}

/**
 * Answers a request for verdicts (docs/spec.md#moderations). They are not the request's `text`, so nobody pays for them.
 */
export function createClassify(moderator: Moderator): Stage<Claimed, Outcome> {
  const check = createCheck(moderator);
  return async (run) => {
    const results = [];
    for (const message of run.envelope.request.messages)
      results.push(toResult(await check(run, readingsOfInputs([message]))));
    run.answer.unsent = [JSON.stringify({ model: moderator.backend, results })];
    return { finishReason: 'stop', usage: { promptTokens: 0, completionTokens: 0 } };
  };
}

/** Checks all that a model would read, before any provider sees it. */
export function createModerate({ moderator, clock, events }: ModerateDeps): Stage<Assembled, Assembled> {
  const check = createCheck(moderator);

  /** Finds out which part of a flagged prompt was the reason. */
  async function refusalOf(run: Assembled, flagged: readonly string[]): Promise<ServiceError> {
    const { context, prompt, envelope } = run;
    const what = envelope.request.task === undefined ? 'messages were' : 'input was';
    const values = context.map(({ text }) => text);
    const categories = flagged.join(', ');
    const verdict = await check(run, readingsOfContext({ instruction: prompt.instruction, values }));
    if (!verdict.flagged) return refusalOfMessages(categories, what);
    for (const value of context.slice(1)) {
      const alone = await check(run, [`${value.field}: ${value.text}`]);
      if (alone.flagged) return refusalOfValue(value, categories);
    }
    const [first] = context;
    return first === undefined ? refusalOfMessages(categories, what) : refusalOfValue(first, categories);
  }

  return async (run) => {
    const { envelope, context, prompt } = run;
    const { trace } = run.answer;
    const { request } = envelope;
    const { messages, task } = request;
    const values = context.map(({ text }) => text);
    const read = () => readingsOf({ ...prompt, values, messages, beside: textsBeside(request) });
    const verdict = await check(run, task === undefined ? read() : readingsOfInputs(messages));
    const categories = [...verdict.categories];
    trace.moderatedAt = clock.now();
    const result = verdict.flagged ? 'flagged_input' : 'passed';
    trace.moderation = { backend: moderator.backend, verdict: result, categories };
    if (!verdict.flagged) return run;
    events.emit('moderation.flagged', run, 'input', categories);
    throw await refusalOf(run, categories);
  };
}
