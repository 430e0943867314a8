import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import type { Usage } from '../../shared/contracts/events.ts';
import { NotJsonError, isJsonObject, noJson, toCallerError } from './provider-call/caller-error.ts';
import { amountWith, estimatePrompt, estimateTokens } from './lease/estimate-tokens.ts';
import { openReleaseGate } from './lease/release-gate.ts';
import { believedUsage, estimateUsage } from './prompt/answer-usage.ts';
import { TooLongError, promptFor } from './prompt/fit-window.ts';
import { toErrorDetail } from '../../shared/errors/error-body.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { ProviderKind } from '../../shared/domain/routing/routing.ts';
import { withRetries } from '../../shared/infra/http/retry.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import { runProviderCall } from './provider-call/run-provider-call.ts';
import type { ProviderCallInput, ProviderCallResult } from './provider-call/run-provider-call.ts';
import { noteVerdict, traceProviderCall, traceSkipped } from './provider-call/trace-provider-call.ts';
import { BreakerOpenError } from './breakers/circuit.ts';
import type { Breakers } from './breakers/breakers.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { ChunkWriter } from './chunks/chunk-writer.ts';
import { policyOf } from '../moderation/moderator.ts';
import type { ModerationPolicy, OutputWindow, WindowListener } from '../moderation/moderator.ts';
import { ProviderError } from '../providers/provider.ts';
import type { ProviderAdapter } from '../providers/provider.ts';
import type { WorkerEmitter } from '../worker-events.ts';
import { Stopped } from './stage.ts';
import type { Generated, Outcome, Routed, Stage } from './stage.ts';

export interface GenerateDeps {
  adapters: Record<ProviderKind, ProviderAdapter>;
  breakers: Pick<Breakers, 'guard' | 'isPassable'>;
  openWindow: (policy: ModerationPolicy, listener: WindowListener) => OutputWindow;
  openWriter: (run: Routed) => ChunkWriter;
  events: WorkerEmitter;
  /** Silence between two pieces of text that counts as a hung provider. */
  betweenTokensMs: number;
  clock: Clock;
  log: Logger;
}

/** The longest `Retry-After` of a provider that is waited for: beyond it the caller's retry, or another target, is quicker. */
const ASKED_WAIT_MAX_MS = 10_000;
const ASKED_WAIT_BESIDE_OTHERS_MS = 1_000;

/** What a target is asked, and whether the hold covers the longest answer. */
interface Prompt {
  messages: ChatMessage[];
  isCovered: boolean;
}

/** Whether a stopped request still ends as an answer, with the text that there is. */
function endsWithText(error: unknown): boolean {
  return error instanceof Stopped && (error.reason === 'cancelled' || error.reason === 'exhausted');
}

/**
 * Asks the targets in turn, and skips those whose circuit breaker is open. Until the first text has been sent, a failed call
 * is replaced by another call of the same target, then by the next target. A failed answer of which the caller has seen
 * nothing is discarded and not charged.
 */
export function createGenerate(deps: GenerateDeps): Stage<Routed, Generated> {
  const { adapters, breakers, openWindow, openWriter, events, betweenTokensMs, clock, log } = deps;

  type Route = Routed['targets'][number];

  /** Makes one call and notes it in the trace. Calls `onBegin` with the first text. */
  async function ask(
    run: Routed,
    route: Route,
    { messages, isCovered }: Prompt,
    writer: ChunkWriter | undefined,
    onBegin: () => void,
  ): Promise<ProviderCallResult> {
    const { envelope, answer, lease } = run;
    const { target, provider } = route;
    const asked = { provider: provider.name, model: target.model };
    const promptTokens = estimatePrompt(messages);
    Object.assign(answer, { text: '', asked: messages, promptTokens, ...asked });
    if (writer === undefined) answer.unsent = [];
    // The provider streams a complete answer, too, if its growth must be watched because the hold does not cover the longest
    // answer, or if another target may answer: a stream shows a silent target within the first token's time limit.
    const watched = !isCovered || hasOtherTarget(run, route);
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
      stream: envelope.stream || watched,
      joinsText: isCovered,
      outer: lease.signal,
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
    }
  }

  async function attempt(run: Routed, route: Route, prompt: Prompt, writer: ChunkWriter | undefined): Promise<Outcome> {
    const { provider, target } = route;
    const call = (onBegin: () => void) => ask(run, route, prompt, writer, onBegin);
    const result = await breakers.guard(provider, call).catch((error: unknown) => {
      if (error instanceof ProviderError)
        events.emit('provider.called', { provider: provider.name, model: target.model }, error.fault);
      // Only the moderation window throws ServiceErrors here: its backend gave no verdict.
      if (error instanceof ServiceError) noteVerdict(run.answer.trace, 'unavailable', []);
      throw error;
    });
    events.emit('provider.called', { provider: provider.name, model: target.model }, 'ok');
    if (result.flagged !== undefined) {
      noteVerdict(run.answer.trace, 'flagged_output', result.flagged.categories);
      events.emit('moderation.flagged', run, 'output', result.flagged.categories);
    }
    const usage = await usageOf(run, route, prompt, result.usage);
    if (run.envelope.request.jsonMode && result.finishReason === 'stop' && !isJsonObject(run.answer.text)) {
      run.answer.rejected = 'not_json';
      throw new NotJsonError(usage);
    }
    return { finishReason: result.finishReason, usage };
  }

  /** What is charged and counted: the provider's count where it can be true, else our own. */
  async function usageOf(run: Routed, { provider, target }: Route, { messages }: Prompt, said: Usage | undefined) {
    const { requestId, request } = run.envelope;
    const believed = said && believedUsage(said, messages, request.maxTokens);
    if (said !== undefined && believed === undefined) {
      log.warn('A provider reported a number of tokens that cannot be true; the service counts itself.', {
        requestId,
        provider: provider.name,
        model: target.model,
        promptTokens: said.promptTokens,
        completionTokens: said.completionTokens,
      });
    }
    return believed ?? estimateUsage(messages, run.answer.text, request.maxTokens);
  }

  function isReplaceable(run: Routed, writer: ChunkWriter | undefined): boolean {
    return writer === undefined || run.answer.text === '';
  }

  /** Whether a later target may be asked when this one fails. */
  function hasOtherTarget(run: Routed, route: Route): boolean {
    const others = run.targets.slice(run.targets.indexOf(route) + 1);
    return others.some(({ provider }) => breakers.isPassable(provider));
  }

  async function tryTarget(run: Routed, route: Route, writer: ChunkWriter | undefined): Promise<Outcome> {
    const { lease, envelope } = run;
    const messages = await promptFor(run.prompt, route.target.contextWindow, envelope.request.maxTokens);
    // Admission could not know the history, so hold and token weight are raised before the provider is called.
    const isCovered = await lease.cover(estimatePrompt(messages), run.history.length > 0);
    const prompt = { messages, isCovered };
    const hasOther = hasOtherTarget(run, route);
    const askedWaitMaxMs = hasOther ? ASKED_WAIT_BESIDE_OTHERS_MS : ASKED_WAIT_MAX_MS;
    let callsLeft = route.provider.maxRetries;
    let asksLeft = 1;
    return withRetries(() => attempt(run, route, prompt, writer), {
      retries: callsLeft + asksLeft,
      signal: lease.signal,
      mayRetry: (error) => {
        if (!isReplaceable(run, writer)) return false;
        if (error instanceof NotJsonError) return asksLeft-- > 0;
        if (!(error instanceof ProviderError)) return false;
        if (error.fault !== 'transient' && (error.fault !== 'silent' || hasOtherTarget(run, route))) return false;
        return error.retryAfterMs <= askedWaitMaxMs && callsLeft-- > 0;
      },
      askedWaitMs: (error) => (error instanceof ProviderError ? error.retryAfterMs : 0),
      onRetry: (error, number) => {
        log.info('A provider call is tried again.', {
          requestId: envelope.requestId,
          provider: route.provider.name,
          attempt: number,
          error,
        });
      },
    });
  }

  async function tryTargets(run: Routed, writer: ChunkWriter | undefined): Promise<Outcome> {
    let last: unknown;
    let tooLong: TooLongError | undefined;
    let open: BreakerOpenError | undefined;
    let windowTokensMin = 0;
    let waitMs = Infinity;
    for (const route of run.targets) {
      if (route.target.contextWindow < windowTokensMin) continue;
      try {
        return await tryTarget(run, route, writer);
      } catch (error) {
        if (error instanceof TooLongError) {
          if (tooLong === undefined || error.overTokens < tooLong.overTokens) tooLong = error;
          continue;
        }
        if (error instanceof BreakerOpenError) {
          const { target, provider } = route;
          const skipped = { provider: provider.name, model: target.model };
          traceSkipped(run.answer.trace, skipped, 'breaker_open', clock.now());
          if (open === undefined || error.retryInMs < open.retryInMs) open = error;
          waitMs = Math.min(waitMs, error.retryInMs);
          continue;
        }
        last = error;
        if (!(error instanceof ProviderError)) break;
        waitMs = Math.min(waitMs, error.retryAfterMs);
        log.warn('A provider failed.', { requestId: run.envelope.requestId, provider: route.provider.name, error });
        if (error.fault === 'caller' || error.fault === 'filtered' || !isReplaceable(run, writer)) break;
        // Models count tokens differently, so a target with a window of the same size is worth a try.
        if (error.fault === 'too_long') windowTokensMin = Math.max(windowTokensMin, route.target.contextWindow);
      }
    }
    // The caller has seen the whole answer, and its usage is known: it ends with the error and is charged.
    if (last instanceof NotJsonError && !isReplaceable(run, writer))
      return { finishReason: 'error', usage: last.usage, error: toErrorDetail(noJson(last)) };
    throw toCallerError(last ?? open ?? tooLong, waitMs);
  }

  return async (run) => {
    const writer = run.envelope.stream ? openWriter(run) : undefined;
    try {
      return { ...run, outcome: await tryTargets(run, writer) };
    } catch (error) {
      // The caller has seen nothing of a failed complete answer, so it is discarded.
      if (writer === undefined && !endsWithText(error)) Object.assign(run.answer, { text: '', unsent: [] });
      throw error;
    } finally {
      // An entity's turn is stored before the end, which takes long if MongoDB is away: text must not wait for it.
      await writer?.settle(run.entity !== undefined);
    }
  };
}
