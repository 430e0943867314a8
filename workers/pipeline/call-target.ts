import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import { fieldsOf, toDelta, withKinds } from '../../shared/contracts/events.ts';
import type {
  AttemptTrace,
  Delta,
  TracedRoute,
  ModerationTrace,
  RequestTrace,
  Usage,
} from '../../shared/contracts/events.ts';
import { queueOf } from '../../shared/contracts/jobs.ts';
import { PAUSE_MAX_MS } from '../../shared/domain/capacity.ts';
import type { ProviderKind } from '../../shared/domain/routing.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import { policyOf } from '../moderation/moderator.ts';
import type { ModerationPolicy, OpenWindow, OutputWindow, WindowListener } from '../moderation/moderator.ts';
import { ProviderError } from '../providers/provider.ts';
import type { ProviderAdapter, ReportedUsage } from '../providers/provider.ts';
import type { WorkerEmitter } from './worker-events.ts';
import type { Breakers } from './breakers.ts';
import type { Capacities } from './capacities.ts';
import type { ChunkWriter } from './chunk-writer.ts';
import { countedOf } from './fit-window.ts';
import type { TargetPrompt } from './fit-window.ts';
import { NotJsonError, faultOf, withoutFence } from './json-answer.ts';
import { failureReason, firstTokenLimit, runProviderCall } from './run-provider-call.ts';
import type { ProviderCallInput, ProviderCallResult } from './run-provider-call.ts';
import type { Seat } from './seats.ts';
import {
  amountWith,
  plausibleUsage,
  estimatePrompt,
  estimateTokens,
  estimateUsage,
  openReleaseGate,
} from './spending.ts';
import { addIncrement, contentOf, isEmpty } from './stage.ts';
import type { Ask, Outcome, Routed } from './stage.ts';

async function traceProviderCall<T>(
  trace: RequestTrace,
  route: TracedRoute,
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

function recordVerdict(trace: RequestTrace, verdict: ModerationTrace['verdict'], categories: readonly string[]): void {
  if (trace.moderation !== undefined) trace.moderation = { ...trace.moderation, verdict, categories: [...categories] };
}

export function traceSkipped(trace: RequestTrace, route: TracedRoute, outcome: 'breaker_open', now: number): void {
  trace.attempts.push({ ...route, startedAt: now, endedAt: now, outcome });
}

export interface CallTargetDeps {
  adapters: Record<ProviderKind, ProviderAdapter>;
  breakers: Pick<Breakers, 'guard' | 'isPassable'>;
  capacities: Pick<Capacities, 'enter' | 'isServing' | 'seeksCeiling'>;
  openWindow: (policy: ModerationPolicy, listener: WindowListener) => OutputWindow;
  events: WorkerEmitter;
  /** A provider that is silent for this long behind the first text counts as hung. */
  silenceMs: number;
  /** A target that takes longer for an answer is slow: the caller of a complete one may leave before it comes. */
  slowAnswerMs: number;
  clock: Clock;
  log: Logger;
}

export type Route = Routed['targets'][number];

/** `isCovered`: the hold covers the longest answer. */
interface Prompt extends TargetPrompt {
  isCovered: boolean;
}

/** True for errors of a provider that is only full: it serves other calls, and does not ask for a long wait. */
function isFull({ fault, status, retryAfterMs }: ProviderError): boolean {
  if (fault !== 'transient' || retryAfterMs > PAUSE_MAX_MS) return false;
  return status === 429 || (status === 503 && retryAfterMs > 0);
}

/** True if a later target can be called when this one fails. */
export function hasOtherTarget(breakers: CallTargetDeps['breakers'], run: Routed, route: Route): boolean {
  const others = run.targets.slice(run.targets.indexOf(route) + 1);
  return others.some(({ provider }) => breakers.isPassable(provider));
}

interface CallPlace {
  seat: Seat;
  isWatched: boolean;
  isStreamed: boolean;
}

/** A target counts as slow for this long after an answer that took long. */
const SLOW_REMEMBERED_MS = 600_000;

const nameOf = ({ provider, target }: Route) => `${provider.name} ${target.model}`;

/** Asks for an answer again that did not fit its schema. The caller pays for neither its messages nor that answer. */
export interface Repair {
  messages: readonly ChatMessage[];
  /** Without the repair. */
  promptTokens: number;
  /** Of the answer: as many as the window leaves beside it. */
  maxTokens: number;
}

interface TargetCall {
  run: Routed;
  route: Route;
  prompt: Prompt;
  repair: Repair | undefined;
  /** Undefined: nothing is sent before the answer is whole. */
  writer: ChunkWriter | undefined;
}

function createPlaces({ breakers, capacities, slowAnswerMs, clock }: CallTargetDeps) {
  /** The latest slow answer, by provider and model. */
  const slowAt = new Map<string, number>();

  function streaming({ run, route, prompt }: TargetCall): Omit<CallPlace, 'seat'> {
    if (run.envelope.request.task !== undefined) return { isWatched: false, isStreamed: false };
    // Even a complete answer is streamed from the provider if its growth must be watched, as the hold does not cover
    // the longest one, or if another target may answer: a stream exposes a silent target in the first token's time.
    const isWatched = run.envelope.stream || !prompt.isCovered || hasOtherTarget(breakers, run, route);
    if (isWatched) return { isWatched, isStreamed: true };
    // If the caller of a complete answer leaves, the request may be cancelled, and the text so far is billed. A target
    // that answers in one piece has none by then, in spite of its work, so a slow one is asked for a stream.
    const isSlow = clock.now() - (slowAt.get(nameOf(route)) ?? -Infinity) < SLOW_REMEMBERED_MS;
    const mayBeLeft = isSlow && run.onDisconnect === 'cancel';
    return { isWatched, isStreamed: mayBeLeft || capacities.seeksCeiling(route, estimatePrompt(countedOf(prompt))) };
  }

  return {
    async enter(call: TargetCall, hasRoomBeside: () => boolean): Promise<CallPlace> {
      const { run, route, prompt } = call;
      run.job?.placed();
      const how = streaming(call);
      const seat = await capacities.enter(route, {
        promptTokens: estimatePrompt(countedOf(prompt)),
        maxTokens: prompt.maxTokens,
        isStreamed: how.isStreamed,
        isBatch: queueOf(run.envelope.endpoint) === 'batch',
        signal: run.lease.signal,
        hasRoomBeside,
      });
      return { ...how, seat };
    },

    /** Frees the place after the call. */
    async use(route: Route, { seat }: CallPlace, call: () => Promise<ProviderCallResult>): Promise<ProviderCallResult> {
      try {
        const result = await call();
        const { usage } = result;
        seat.leave({ kind: 'served', tokens: usage && usage.promptTokens + usage.completionTokens });
        return result;
      } catch (error) {
        if (!(error instanceof ProviderError) || !isFull(error) || !capacities.isServing(route)) {
          seat.leave({ kind: 'failed' });
          throw error;
        }
        const { status = 429, retryAfterMs } = error;
        seat.leave({ kind: 'full', retryAfterMs });
        throw new ProviderError('full', error.message, { status, retryAfterMs, cause: error });
      }
    },

    /** `endedAt`: milliseconds since the epoch. */
    recordDuration(route: Route, durationMs: number, endedAt: number): void {
      if (durationMs > slowAnswerMs) slowAt.set(nameOf(route), endedAt);
    },
  };
}

function withRepair(messages: readonly ChatMessage[], { repair }: TargetCall): readonly ChatMessage[] {
  return repair === undefined ? messages : [...messages, ...repair.messages];
}

function openAsk(call: TargetCall): Ask {
  const { run, route, prompt, repair, writer } = call;
  const { answer } = run;
  const { target, provider } = route;
  const messages = withRepair(countedOf(prompt), call);
  const promptTokens = estimatePrompt(messages);
  const paidPrompt = repair?.promptTokens;
  const heard = { units: 0, pieces: 0 };
  const ask = {
    messages,
    contextWindow: target.contextWindow,
    cost: target.cost,
    promptTokens,
    paidPrompt,
    maxTokens: repair?.maxTokens ?? prompt.maxTokens,
    heard,
  };
  const opened: Ask = { ...ask, reported: undefined, durationMs: 0, isRefused: false };
  answer.asks.push(opened);
  const asked = { asked: countedOf(prompt), promptTokens: paidPrompt ?? promptTokens };
  Object.assign(answer, { ...asked, text: '', lines: undefined, provider: provider.name, model: target.model });
  if (writer === undefined) answer.unsent = [];
  return opened;
}

/** Vectors are no text that could be moderated. */
const openUnread: OpenWindow = ({ release }) => ({
  push: release,
  end: () => Promise.resolve(),
  close: () => undefined,
});

function inputOf(
  call: TargetCall,
  { seat, isWatched, isStreamed }: CallPlace,
  ask: Ask,
  { silenceMs, openWindow }: CallTargetDeps,
): Omit<ProviderCallInput, 'onIncrement'> {
  const { prompt, writer, repair } = call;
  const { target, provider } = call.route;
  const { envelope, lease } = call.run;
  return {
    envelope,
    target,
    provider,
    messages: withRepair(prompt.messages, call),
    maxTokens: repair?.maxTokens ?? prompt.maxTokens,
    stream: isStreamed,
    seat,
    joinsText: prompt.isCovered,
    outer: lease.signal,
    // A complete answer that comes in one piece has its first token with its last, and a slow one keeps its time.
    firstTokenMs: isWatched ? firstTokenLimit(provider.firstTokenTimeoutMs, ask.promptTokens) : provider.timeoutMs,
    silenceMs,
    openWindow: (listener) =>
      envelope.request.task === undefined
        ? openWindow(policyOf(envelope.tenant.moderation), listener)
        : openUnread(listener),
    scheduleRead: writer?.scheduleRead,
    onHeard(event) {
      if (event.kind === 'end') {
        ask.reported = event.usage;
        return;
      }
      ask.heard.units += event.text.length;
      ask.heard.pieces += 1;
    },
  };
}

/** The usage that is charged and counted: the provider's count if it is plausible, or else our own. */
async function usageOf(call: TargetCall, reported: ReportedUsage | undefined, log: Logger): Promise<Usage> {
  const { run, route, prompt, repair } = call;
  const { requestId, request } = run.envelope;
  const { text } = run.answer;
  const { contextWindow } = route.target;
  const asked = { messages: withRepair(countedOf(prompt), call), contextWindow };
  const believed = reported && plausibleUsage(reported, asked, text, request.maxTokens);
  if (reported !== undefined && believed === undefined) {
    log.warn('A provider reported a number of tokens that cannot be true; the service counts itself.', {
      requestId,
      provider: route.provider.name,
      model: route.target.model,
      promptTokens: reported.promptTokens,
      completionTokens: reported.completionTokens,
    });
  }
  if (believed === undefined) return estimateUsage(countedOf(prompt), text, request.maxTokens);
  return repair === undefined
    ? believed
    : withKinds({ ...believed, promptTokens: Math.min(believed.promptTokens, repair.promptTokens) }, believed);
}

/** Drops a delta's content, and keeps its other fields, such as the probabilities of its tokens. */
function withoutContent(delta: Delta): Delta[] {
  const [{ content, ...fields }, choice] = fieldsOf(delta.line);
  if (content === undefined) return [delta];
  return choice === undefined && Object.keys(fields).length === 0 ? [] : [toDelta(fields, choice)];
}

/** Removes what models write around an object; throws NotJsonError where there is none, or a wrong one. */
function assertJson({ run, writer }: TargetCall, { finishReason, usage }: Outcome): void {
  const { answer } = run;
  // Reasoning beside it is no part of the object; calls of tools and refusals stand in its place.
  const content = contentOf(answer);
  if (content === null) return;
  const text = writer === undefined ? withoutFence(content) : content;
  // The caller, replays, batches and the entity's history get what the pieces of the answer say.
  if (text !== content) {
    const others = answer.unsent.flatMap((increment) =>
      typeof increment === 'string' ? [] : withoutContent(increment),
    );
    Object.assign(answer, { text: '', lines: undefined, unsent: [...others, text] });
    for (const increment of answer.unsent) addIncrement(answer, increment);
  }
  if (finishReason !== 'stop') return;
  const fault = faultOf(text, run.envelope.request.schema);
  if (fault === undefined) return;
  answer.rejected = 'not_json';
  throw new NotJsonError(usage, fault, text);
}

/** Makes one call and notes it in the trace. Calls `onBegin` when the first text is released. */
function createAsk(deps: CallTargetDeps, places: ReturnType<typeof createPlaces>) {
  const { adapters, events, clock } = deps;

  return async function ask(call: TargetCall, place: CallPlace, onBegin: () => void): Promise<ProviderCallResult> {
    const { run, route, writer } = call;
    const { answer, lease } = run;
    const { target, provider } = route;
    const opened = openAsk(call);
    const { promptTokens } = answer;
    const calledAt = clock.now();
    let shown = { bytes: 0, pieces: 0 };
    const gate = openReleaseGate(lease, (increment) => {
      if (isEmpty(answer)) {
        answer.firstTextAt = clock.now();
        events.emit('answer.first_text', run);
        onBegin();
      }
      addIncrement(answer, increment);
      shown = amountWith(shown, increment);
      lease.need({ promptTokens, completionTokens: estimateTokens(shown) });
      if (writer === undefined) answer.unsent.push(increment);
      else writer.write(increment);
    });
    const input = { ...inputOf(call, place, opened, deps), onIncrement: gate.push };
    try {
      const asked = { provider: provider.name, model: target.model };
      const generateText = () => runProviderCall(adapters[provider.kind], input);
      const result = await traceProviderCall(answer.trace, asked, clock.now, generateText);
      await gate.end();
      return result;
    } catch (error) {
      opened.isRefused = error instanceof ProviderError && error.isRefusal && opened.heard.pieces === 0;
      throw error;
    } finally {
      gate.close();
      const endedAt = clock.now();
      opened.durationMs = endedAt - calledAt;
      places.recordDuration(route, opened.durationMs, endedAt);
    }
  };
}

/** Calls a target once, behind its circuit breaker; its text goes through moderation and lease to the caller. */
export function createCallTarget(deps: CallTargetDeps) {
  const { breakers, events, log } = deps;
  const places = createPlaces(deps);
  const ask = createAsk(deps, places);

  return async (call: TargetCall, hasRoomBeside: () => boolean): Promise<Outcome> => {
    const { run, route } = call;
    const { provider, target } = route;
    const asked = { provider: provider.name, model: target.model };
    // A breaker that lets no call through says so at once.
    let place = breakers.isPassable(provider) ? await places.enter(call, hasRoomBeside) : undefined;
    const callInPlace = async (onBegin: () => void) => {
      const taken = place ?? (await places.enter(call, hasRoomBeside));
      place = undefined;
      return places.use(route, taken, () => ask(call, taken, onBegin));
    };
    const result = await breakers.guard(provider, callInPlace).catch((error: unknown) => {
      // The breaker has opened meanwhile.
      place?.seat.leave({ kind: 'failed' });
      if (error instanceof ProviderError && error.wasAsked) events.emit('provider.called', asked, error.fault);
      // Of ServiceErrors only the moderation window throws this one, when its backend gave no verdict.
      if (error instanceof ServiceError && error.code === 'model_unavailable')
        recordVerdict(run.answer.trace, 'unavailable', []);
      throw error;
    });
    events.emit('provider.called', asked, 'ok');
    if (result.unknownReason !== undefined) events.emit('provider.odd_end', asked, result.unknownReason);
    if (result.flagged !== undefined) {
      recordVerdict(run.answer.trace, 'flagged_output', result.flagged.categories);
      events.emit('moderation.flagged', run, 'output', result.flagged.categories);
    }
    const outcome = { finishReason: result.finishReason, usage: await usageOf(call, result.usage, log) };
    const { jsonMode, schema } = run.envelope.request;
    if (jsonMode || schema !== undefined) assertJson(call, outcome);
    return outcome;
  };
}
