import type { ChatMessage, ChatRequest } from '../../shared/contracts/chat-request.ts';
import { textsBeside } from '../../shared/contracts/message-text.ts';
import { enforcesSchema, fitAnswer, orderTargets, routesOf, servable, targetsOf } from '../../shared/domain/routing.ts';
import type { RoutingTable } from '../../shared/domain/routing.ts';
import { toErrorDetail } from '../../shared/errors/error-body.ts';
import { ServiceError, toRetrySeconds } from '../../shared/errors/service-error.ts';
import { withRetries } from '../providers/http-call.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import { ProviderError } from '../providers/provider.ts';
import { createCallTarget, hasOtherTarget, traceSkipped } from './call-target.ts';
import type { CallTargetDeps, Repair, Route } from './call-target.ts';
import type { Capacities } from './capacities.ts';
import type { ChunkWriter } from './chunk-writer.ts';
import { BreakerOpenError } from './breakers.ts';
import { TooLongError, countedOf, inputsFor, promptFor } from './fit-window.ts';
import type { PromptParts, TargetPrompt } from './fit-window.ts';
import { NotJsonError, noJson, repairOf, schemaInstruction } from './json-answer.ts';
import { estimatePrompt } from './spending.ts';
import { Stopped, isEmpty } from './stage.ts';
import type { Assembled, Generated, Outcome, Routed, Stage } from './stage.ts';
import { ProviderTimeout } from './run-provider-call.ts';

/** A provider may ask for any wait; the caller is given one within these bounds. */
const TOLD_WAIT_MIN_SECONDS = 5;
const TOLD_WAIT_MAX_SECONDS = 3_600;

function toldWaitSeconds(waitMs: number): number {
  if (waitMs === Infinity) return TOLD_WAIT_MIN_SECONDS;
  return Math.min(TOLD_WAIT_MAX_SECONDS, Math.max(TOLD_WAIT_MIN_SECONDS, toRetrySeconds(waitMs)));
}

/**
 * `waitMs`: the shortest wait that a target asked for; Infinity: none did. `windowTokensMin`: the largest window of a
 * target that took the prompt for too long.
 */
function toCallerError(
  error: unknown,
  { waitMs, windowTokensMin }: { waitMs: number; windowTokensMin: number },
): unknown {
  if (error instanceof TooLongError)
    return new ServiceError('context_length_exceeded', error.message, { param: error.param });
  if (error instanceof NotJsonError) return noJson(error);
  if (error instanceof BreakerOpenError) {
    return new ServiceError(
      'model_unavailable',
      'The model provider is not available at the moment; try again later.',
      { retryAfterSeconds: toRetrySeconds(error.retryInMs) },
    );
  }
  if (!(error instanceof ProviderError)) return error;
  if (error.fault === 'too_long') {
    // The provider may count otherwise, or its window be smaller than the administrator has set.
    return new ServiceError(
      'context_length_exceeded',
      `The messages are too long for the model, whose maximum context length is ${windowTokensMin} tokens or less; send fewer or shorter ones.`,
      { cause: error, param: 'messages' },
    );
  }
  if (error.fault === 'filtered') {
    return new ServiceError('content_policy_violation', "The model provider's content filter refused the messages.", {
      cause: error,
    });
  }
  if (error.fault === 'caller') {
    return new ServiceError(
      'invalid_request',
      'The model provider refused the request as invalid; check messages and parameters.',
      { cause: error },
    );
  }
  if (error instanceof ProviderTimeout) {
    return new ServiceError('timeout', 'The model did not answer within its time limit; try again.', { cause: error });
  }
  return new ServiceError(
    'model_unavailable',
    'The model provider is not available at the moment; try again with exponential backoff.',
    { cause: error, retryAfterSeconds: toldWaitSeconds(waitMs) },
  );
}

export interface TargetFailures {
  /** The failure of the target that was called last. */
  called: unknown;
  /** Among the skipped targets, the failure of the one whose circuit breaker lets a call through first. */
  open: BreakerOpenError | undefined;
  /** The failure of the target whose window was too small by the fewest tokens. */
  tooLong: TooLongError | undefined;
  /** Targets with a smaller context window need not be called. */
  windowTokensMin: number;
  /** Milliseconds until the first target may be called again; Infinity: no target has said when. */
  waitMs: number;
}

export function noFailures(): TargetFailures {
  return { called: undefined, open: undefined, tooLong: undefined, windowTokensMin: 0, waitMs: Infinity };
}

/** The failure to report to the caller: a failed call before an open breaker, and that before a prompt's length. */
export function worstOf({ called, open, tooLong }: TargetFailures): unknown {
  return called ?? open ?? tooLong;
}

function addCall(failures: TargetFailures, error: unknown, { target }: Route): boolean {
  failures.called = error;
  if (!(error instanceof ProviderError)) return false;
  failures.waitMs = Math.min(failures.waitMs, error.retryAfterMs);
  // Models count tokens differently, so a target with a window of the same size is worth a try.
  if (error.fault === 'too_long') failures.windowTokensMin = Math.max(failures.windowTokensMin, target.contextWindow);
  return error.fault !== 'caller' && error.fault !== 'filtered';
}

/** Records why a target gave no answer. False: no other target can help. */
export function addFailure(failures: TargetFailures, error: unknown, route: Route): boolean {
  const { tooLong, open } = failures;
  if (error instanceof TooLongError) {
    if (tooLong === undefined || error.overTokens < tooLong.overTokens) failures.tooLong = error;
    return true;
  }
  if (error instanceof BreakerOpenError) {
    if (open === undefined || error.retryInMs < open.retryInMs) failures.open = error;
    failures.waitMs = Math.min(failures.waitMs, error.retryInMs);
    return true;
  }
  return addCall(failures, error, route);
}

export interface GenerateDeps extends CallTargetDeps {
  openWriter: (run: Routed) => ChunkWriter;
  capacities: CallTargetDeps['capacities'] & Pick<Capacities, 'hasPlace'>;
}

/** The longest `Retry-After` that is waited for; beyond it, the caller's own retry or another target is quicker. */
const ASKED_WAIT_MAX_MS = 10_000;
const ASKED_WAIT_BESIDE_OTHERS_MS = 1_000;
/** More than any request can wait for places. */
const FULL_MAX = 1_000;

/** Among targets of one priority, those with a free place come first; a lower priority is for faults. */
function placesFirst(routes: Routed['targets'], hasPlace: Capacities['hasPlace']): Routed['targets'] {
  const isLater = ({ target: { weight } }: Route) => weight === 0;
  return routes
    .map((route, index) => ({ route, index, isFull: isLater(route) || !hasPlace(route) }))
    .sort(
      (a, b) =>
        a.route.target.priority - b.route.target.priority || Number(a.isFull) - Number(b.isFull) || a.index - b.index,
    )
    .map(({ route }) => route);
}

/** Texts that a model reads besides the messages; the schema only where it is not told in words. */
function besideOf(request: ChatRequest, isTold: boolean): { beside?: ChatMessage } {
  const texts = textsBeside(isTold ? { passed: request.passed ?? {} } : request);
  return texts.length === 0 ? {} : { beside: { role: 'system', content: texts.join('\n') } };
}

/** A model that does not enforce the caller's schema is told of it. */
function partsFor({ prompt: plain, envelope }: Routed, { target, provider }: Route): PromptParts {
  const { schema, passed } = envelope.request;
  if (schema === undefined && passed === undefined) return plain;
  const isTold = schema !== undefined && !enforcesSchema(target, provider);
  const prompt = { ...plain, ...besideOf(envelope.request, isTold) };
  if (!isTold) return prompt;
  const contents = [
    ...(prompt.instruction === undefined ? [] : [prompt.instruction.content]),
    schemaInstruction(schema),
  ];
  return { ...prompt, instruction: { role: 'system', content: contents.join('\n\n') } };
}

function fitTo(run: Routed, route: Route): Promise<TargetPrompt> {
  const request = fitAnswer(run.envelope.request, [route.target]);
  const fit = request.task === undefined ? promptFor : inputsFor;
  return fit(partsFor(run, route), route.target.contextWindow, request);
}

/** The repair of an answer that does not fit its schema. Undefined: the window has no room for another one of its length. */
function repairFor(error: NotJsonError, prompt: TargetPrompt, { target }: Route): Repair | undefined {
  const { promptTokens, completionTokens } = error.usage;
  const messages = repairOf(error);
  const room = target.contextWindow - estimatePrompt([...countedOf(prompt), ...messages]);
  const maxTokens = Math.min(prompt.maxTokens, room);
  return maxTokens < Math.min(prompt.maxTokens, 2 * completionTokens + 1)
    ? undefined
    : { messages, promptTokens, maxTokens };
}

/** True if a stopped request still ends as an answer, with the text so far. */
function endsWithText(error: unknown): boolean {
  return error instanceof Stopped && (error.reason === 'cancelled' || error.reason === 'exhausted');
}

function hasRoomBeside({ breakers, capacities }: GenerateDeps, run: Routed, route: Route): boolean {
  const later = run.targets.slice(run.targets.indexOf(route) + 1);
  return later.some(
    (other) =>
      other.target.priority === route.target.priority &&
      breakers.isPassable(other.provider) &&
      capacities.hasPlace(other),
  );
}

function isReplaceable(run: Routed, writer: ChunkWriter | undefined): boolean {
  return writer === undefined || isEmpty(run.answer);
}

/** Drops a failed complete answer, of which the caller has seen nothing, before the request may be cancelled. */
function discard(run: Routed, writer: ChunkWriter | undefined, error: unknown): never {
  if (writer === undefined && !endsWithText(error))
    Object.assign(run.answer, { text: '', lines: undefined, unsent: [] });
  throw error;
}

/** True: another target can help. */
function recordFailure(
  { clock, log }: GenerateDeps,
  failures: TargetFailures,
  error: unknown,
  run: Routed,
  route: Route,
): boolean {
  const { provider, target } = route;
  if (error instanceof BreakerOpenError)
    traceSkipped(run.answer.trace, { provider: provider.name, model: target.model }, 'breaker_open', clock.now());
  if (error instanceof ProviderError && error.wasAsked)
    log.debug('A provider failed.', { requestId: run.envelope.requestId, provider: provider.name, error });
  return addFailure(failures, error, route);
}

/** Tells whether a call of the same target may succeed, as soon as the provider allows it. */
function mayPass({ fault, retryAfterMs }: ProviderError, hasOther: boolean, maxWaitMs: number): boolean {
  const isPassing = fault === 'transient' || fault === 'flawed' || (fault === 'silent' && !hasOther);
  return isPassing && retryAfterMs <= maxWaitMs;
}

/** Throws the error for the caller, who has seen nothing of an answer, or all of one that is no JSON. */
function endOfFailures(run: Routed, failures: TargetFailures, writer: ChunkWriter | undefined): Outcome {
  // The caller has seen the whole answer and its usage is known, so the request ends with the error and is charged.
  const { called } = failures;
  if (called instanceof NotJsonError && !isReplaceable(run, writer))
    return { finishReason: 'error', usage: called.usage, error: toErrorDetail(noJson(called)) };
  const worst = worstOf(failures);
  if (worst instanceof NotJsonError) run.answer.trace.reason = 'not_json';
  throw toCallerError(worst, failures);
}

function createTryTarget(deps: GenerateDeps) {
  const { breakers, log } = deps;
  const callTarget = createCallTarget(deps);

  return async (run: Routed, route: Route, writer: ChunkWriter | undefined): Promise<Outcome> => {
    const { lease, envelope } = run;
    const fitted = await fitTo(run, route);
    // Admission did not know the history, so hold and token weight are raised before the provider is called.
    const isCovered = await lease.cover(estimatePrompt(countedOf(fitted)), run.history.length > 0);
    const prompt = { ...fitted, isCovered };
    const maxWaitMs = hasOtherTarget(breakers, run, route) ? ASKED_WAIT_BESIDE_OTHERS_MS : ASKED_WAIT_MAX_MS;
    let callsLeft = route.provider.maxRetries;
    let jsonRetriesLeft = 1;
    let repair: Repair | undefined;
    return withRetries(
      () =>
        callTarget({ run, route, prompt, repair, writer }, () => hasRoomBeside(deps, run, route)).catch(
          (error: unknown) => discard(run, writer, error),
        ),
      {
        retries: callsLeft + jsonRetriesLeft + FULL_MAX,
        signal: lease.signal,
        mayRetry: (error) => {
          if (!isReplaceable(run, writer)) return false;
          if (error instanceof NotJsonError) {
            if (envelope.request.schema !== undefined) repair = repairFor(error, prompt, route);
            return jsonRetriesLeft-- > 0;
          }
          if (!(error instanceof ProviderError)) return false;
          if (error.fault === 'full') return !hasRoomBeside(deps, run, route);
          return mayPass(error, hasOtherTarget(breakers, run, route), maxWaitMs) && callsLeft-- > 0;
        },
        // A provider that is full is called again when there is a place for the call, until the request's time is over.
        retryAfterMs: (error) => (error instanceof ProviderError && error.fault !== 'full' ? error.retryAfterMs : 0),
        onRetry: (error, number) => {
          log.debug('A provider call is tried again.', {
            requestId: envelope.requestId,
            provider: route.provider.name,
            calls: number,
            error,
          });
        },
      },
    );
  };
}

/**
 * Calls the targets in turn, skipping open circuit breakers. Until the first text has been sent, a failed call is
 * followed by another call of the same target, then of the next. A failed answer that the caller has seen nothing of is
 * discarded and not charged.
 */
export function createGenerate(deps: GenerateDeps): Stage<Routed, Generated> {
  const { capacities, openWriter } = deps;
  const tryTarget = createTryTarget(deps);

  /** Targets that were passed over as full are asked again before a lower priority; the last of them waits for a place. */
  async function tryTargets(run: Routed, writer: ChunkWriter | undefined, failures = noFailures()): Promise<Outcome> {
    const full: Route[] = [];
    for (const [index, route] of run.targets.entries()) {
      const later = run.targets.slice(index + 1);
      const isLast = later[0]?.target.priority !== route.target.priority;
      try {
        if (route.target.contextWindow >= failures.windowTokensMin) return await tryTarget(run, route, writer);
      } catch (error) {
        if (!recordFailure(deps, failures, error, run, route)) break;
        // Only a failed call, not a skipped target, can have released text.
        if (failures.called === error && !isReplaceable(run, writer)) break;
        if (!isLast && error instanceof ProviderError && error.fault === 'full') full.push(route);
      }
      if (isLast && full.length > 0) return tryTargets({ ...run, targets: [...full, ...later] }, writer, failures);
    }
    return endOfFailures(run, failures, writer);
  }

  return async (routed) => {
    const run =
      routed.targets.length < 2 ? routed : { ...routed, targets: placesFirst(routed.targets, capacities.hasPlace) };
    const writer = run.envelope.stream ? openWriter(run) : undefined;
    try {
      return { ...run, outcome: await tryTargets(run, writer) };
    } finally {
      // Saving an entity's turn takes long if MongoDB is unavailable; text must not wait for that.
      await writer?.settle(run.entity !== undefined);
    }
  };
}

export interface SelectRouteDeps {
  routing: { current(): RoutingTable };
  random: () => number;
  log: Logger;
}

export function createSelectRoute({ routing, random, log }: SelectRouteDeps): Stage<Assembled, Routed> {
  return (run) => {
    const { tier, requestId, request } = run.envelope;
    const table = routing.current();
    const routes = routesOf(table, orderTargets(targetsOf(table, tier, request.model), random));
    if (routes.length > 0)
      return Promise.resolve({ ...run, targets: servable(routes, request.model ?? tier, request) });
    run.answer.trace.reason = 'no_provider_routed';
    log.debug('No provider is routed for the tier; an administrator sets it with PUT /admin/v1/tiers/{tier}.', {
      requestId,
      tier,
    });
    throw new ServiceError(
      'model_unavailable',
      `The model \`${tier}\` has no provider at the moment; try again later.`,
      { retryAfterSeconds: 30 },
    );
  };
}
