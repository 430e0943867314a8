import type { ProviderKind } from '../../../shared/domain/routing/routing.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { policyOf } from '../../moderation/moderator.ts';
import type { ModerationPolicy, OutputWindow, WindowListener } from '../../moderation/moderator.ts';
import { ProviderError } from '../../providers/provider.ts';
import type { ProviderAdapter, ReportedUsage } from '../../providers/provider.ts';
import type { WorkerEmitter } from '../../worker-events.ts';
import type { Breakers } from '../breakers/breakers.ts';
import type { ChunkWriter } from '../chunks/chunk-writer.ts';
import { amountWith, estimatePrompt, estimateTokens } from '../lease/estimate-tokens.ts';
import { openReleaseGate } from '../lease/release-gate.ts';
import { believedUsage, estimateUsage } from '../prompt/answer-usage.ts';
import type { TargetPrompt } from '../prompt/fit-window.ts';
import type { Outcome, Routed } from '../stage.ts';
import { NotJsonError, isJsonObject, withoutFence } from './caller-error.ts';
import { firstTokenLimit } from './provider-call-clock.ts';
import { runProviderCall } from './run-provider-call.ts';
import type { ProviderCallInput, ProviderCallResult } from './run-provider-call.ts';
import { noteVerdict, traceProviderCall } from './trace-provider-call.ts';

export interface CallTargetDeps {
  adapters: Record<ProviderKind, ProviderAdapter>;
  breakers: Pick<Breakers, 'guard' | 'isPassable'>;
  openWindow: (policy: ModerationPolicy, listener: WindowListener) => OutputWindow;
  events: WorkerEmitter;
  /** Silence between two pieces of text after which a provider counts as hung. */
  betweenTokensMs: number;
  /** A target that takes longer for an answer is slow: the caller of a complete one may leave before it comes. */
  slowAnswerMs: number;
  clock: Clock;
  log: Logger;
}

export type Route = Routed['targets'][number];

/** What a target is sent, and whether the hold covers the longest answer. */
interface Prompt extends TargetPrompt {
  isCovered: boolean;
}

/** Whether a later target can be called if this one fails. */
export function hasOtherTarget(breakers: Pick<Breakers, 'isPassable'>, run: Routed, route: Route): boolean {
  const others = run.targets.slice(run.targets.indexOf(route) + 1);
  return others.some(({ provider }) => breakers.isPassable(provider));
}

/** For how long a target counts as slow after an answer that took long. */
const SLOW_REMEMBERED_MS = 600_000;

/** Calls a target once, behind its circuit breaker; its text goes through moderation and lease to the caller. */
export function createCallTarget(deps: CallTargetDeps) {
  const { adapters, breakers, openWindow, events, betweenTokensMs, clock, log } = deps;
  /** By provider and model, when an answer last took long. */
  const slowAt = new Map<string, number>();

  /** Makes one call and notes it in the trace. Calls `onBegin` when the first text is released. */
  async function ask(
    run: Routed,
    route: Route,
    { messages, maxTokens, isCovered }: Prompt,
    writer: ChunkWriter | undefined,
    onBegin: () => void,
  ): Promise<ProviderCallResult> {
    const { envelope, answer, lease, ref } = run;
    const { target, provider } = route;
    const asked = { provider: provider.name, model: target.model };
    const promptTokens = estimatePrompt(messages);
    Object.assign(answer, { text: '', asked: messages, promptTokens, ...asked });
    if (writer === undefined) answer.unsent = [];
    // Even a complete answer is streamed from the provider if its growth must be watched because the hold does not
    // cover the longest answer, or if another target may answer: a stream exposes a silent target within the first
    // token's time limit.
    const isWatched = envelope.stream || !isCovered || hasOtherTarget(breakers, run, route);
    // If the caller of a complete answer leaves, the request may be cancelled, and the text so far is billed. A target
    // that answers in one piece has none by then, although it has worked all the time, so a slow one is asked for a stream.
    const name = `${provider.name} ${target.model}`;
    const calledAt = clock.now();
    const isSlow = calledAt - (slowAt.get(name) ?? -Infinity) < SLOW_REMEMBERED_MS;
    const mayBeLeft = isSlow && ref.facts?.terms.alone === 'cancel';
    let shown = { bytes: 0, pieces: 0 };
    const gate = openReleaseGate(lease, (text) => {
      if (answer.text === '') {
        events.emit('answer.first_text', run);
        onBegin();
      }
      answer.text += text;
      shown = amountWith(shown, text);
      lease.need({ promptTokens, completionTokens: estimateTokens(shown) });
      if (writer === undefined) answer.unsent.push(text);
      else writer.write(text);
    });
    const call: ProviderCallInput = {
      envelope,
      target,
      provider,
      messages,
      maxTokens,
      stream: isWatched || mayBeLeft,
      joinsText: isCovered,
      outer: lease.signal,
      // A complete answer that comes in one piece has its first token with its last, and a slow one keeps its time.
      firstTokenMs: isWatched ? firstTokenLimit(provider.firstTokenTimeoutMs, promptTokens) : provider.timeoutMs,
      betweenTokensMs,
      openWindow: (listener) => openWindow(policyOf(envelope.tenant.moderation), listener),
      readLater: writer?.readLater,
      onText: gate.push,
    };
    const generateText = () => runProviderCall(adapters[provider.kind], call);
    try {
      const result = await traceProviderCall(answer.trace, asked, clock.now, generateText);
      await gate.end();
      return result;
    } finally {
      gate.close();
      const endedAt = clock.now();
      if (endedAt - calledAt > deps.slowAnswerMs) slowAt.set(name, endedAt);
    }
  }

  /** What is charged and counted: the provider's count if it is plausible, or else our own. */
  async function usageOf(run: Routed, { provider, target }: Route, { messages }: Prompt, said?: ReportedUsage) {
    const { requestId, request } = run.envelope;
    const { text } = run.answer;
    const believed = said && believedUsage(said, messages, text, request.maxTokens);
    if (said !== undefined && believed === undefined) {
      log.warn('A provider reported a number of tokens that cannot be true; the service counts itself.', {
        requestId,
        provider: provider.name,
        model: target.model,
        promptTokens: said.promptTokens,
        completionTokens: said.completionTokens,
      });
    }
    return believed ?? estimateUsage(messages, text, request.maxTokens);
  }

  return async (run: Routed, route: Route, prompt: Prompt, writer: ChunkWriter | undefined): Promise<Outcome> => {
    const { provider, target } = route;
    const call = (onBegin: () => void) => ask(run, route, prompt, writer, onBegin);
    const result = await breakers.guard(provider, call).catch((error: unknown) => {
      if (error instanceof ProviderError)
        events.emit('provider.called', { provider: provider.name, model: target.model }, error.fault);
      // Here only the moderation window throws a ServiceError, when its backend gave no verdict.
      if (error instanceof ServiceError) noteVerdict(run.answer.trace, 'unavailable', []);
      throw error;
    });
    events.emit('provider.called', { provider: provider.name, model: target.model }, 'ok');
    if (result.unknownReason !== undefined)
      events.emit('provider.odd_end', { provider: provider.name, model: target.model }, result.unknownReason);
    if (result.flagged !== undefined) {
      noteVerdict(run.answer.trace, 'flagged_output', result.flagged.categories);
      events.emit('moderation.flagged', run, 'output', result.flagged.categories);
    }
    const usage = await usageOf(run, route, prompt, result.usage);
    if (writer === undefined && run.envelope.request.jsonMode) {
      const text = withoutFence(run.answer.text);
      // The caller, replays, batches and the entity's history get what the pieces of the answer say.
      if (text !== run.answer.text) Object.assign(run.answer, { text, unsent: [text] });
    }
    if (run.envelope.request.jsonMode && result.finishReason === 'stop' && !isJsonObject(run.answer.text)) {
      run.answer.rejected = 'not_json';
      throw new NotJsonError(usage);
    }
    return { finishReason: result.finishReason, usage };
  };
}
