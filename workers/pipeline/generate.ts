import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import { isJsonObject } from '../../shared/domain/conversation/json-answer.ts';
import { fitWindow, surelyFits } from '../../shared/domain/prompt/fit-window.ts';
import type { Provider, ProviderKind, Target } from '../../shared/domain/routing/routing.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { withRetries } from '../../shared/infra/http/retry.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import { loadTokenizer } from '../../shared/infra/tokenizer/tokenizer.ts';
import { ProviderTimeout } from '../attempt/attempt-clock.ts';
import { estimateUsage } from '../attempt/estimate-usage.ts';
import { runAttempt } from '../attempt/run-attempt.ts';
import type { AttemptInput } from '../attempt/run-attempt.ts';
import { traceAttempt } from '../attempt/trace-attempt.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { ChunkWriter } from '../chunks/chunk-writer.ts';
import { policyOf } from '../moderation/moderator.ts';
import type { ModerationPolicy, ModerationVerdict } from '../moderation/moderator.ts';
import type { OutputWindow } from '../moderation/output-window.ts';
import { ProviderError } from '../providers/provider.ts';
import type { ProviderAdapter } from '../providers/provider.ts';
import { Stopped } from './stage.ts';
import type { Generated, Outcome, Routed, Stage } from './stage.ts';

export interface GenerateDeps {
  adapters: Record<ProviderKind, ProviderAdapter>;
  openWindow: (policy: ModerationPolicy) => OutputWindow;
  openWriter: (run: Routed) => ChunkWriter;
  onAttempt: (provider: string, outcome: string) => void;
  onFirstText: (run: Routed) => void;
  onFlagged: (run: Routed, verdict: ModerationVerdict) => void;
  /** Silence between two pieces of text that counts as a hung provider. */
  betweenTokensMs: number;
  clock: Clock;
  log: Logger;
}

/** Longer waits are not worth it while another target, or the caller's own retry, may be quicker. */
const ASKED_WAIT_MAX_MS = 10_000;

/** The prompt for one target: history trimmed to its window. Throws `invalid_request` when nothing is left to trim. */
async function promptFor({ prompt, envelope }: Routed, { contextWindow }: Target): Promise<ChatMessage[]> {
  const { maxTokens } = envelope.request;
  const instruction = prompt.instruction === undefined ? [] : [prompt.instruction];
  const all = [...instruction, ...prompt.history, ...prompt.submitted];
  if (surelyFits(prompt, contextWindow, maxTokens)) return all;
  const tokenizer = await loadTokenizer();
  const count = await tokenizer.count(all.map(({ content }) => content));
  const fitted = fitWindow(prompt, contextWindow, maxTokens, count);
  if (fitted.kind === 'fits') return fitted.messages;
  const over = fitted.promptTokens - fitted.roomTokens;
  throw new ServiceError(
    'invalid_request',
    `The messages are ${over} tokens too long for the model: ${fitted.promptTokens} tokens where its window leaves ${Math.max(0, fitted.roomTokens)} beside max_tokens.`,
    { param: 'messages' },
  );
}

/** What the caller hears when no target gave an answer. */
function toCallerError(error: unknown): unknown {
  if (!(error instanceof ProviderError)) return error;
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
    { cause: error, retryAfterSeconds: 5 },
  );
}

/** An answer that is not JSON although JSON was asked for. */
class NotJsonError extends Error {
  override readonly name = 'NotJsonError';
}

/**
 * Asks the targets in turn. Until the first text has been sent, a failed call is replaced: by another try of the same
 * target, then by the next one. An answer that nobody has seen a part of is discarded and not charged.
 */
export function createGenerate(deps: GenerateDeps): Stage<Routed, Generated> {
  const { adapters, openWindow, openWriter, onAttempt, onFirstText, onFlagged, betweenTokensMs, clock, log } = deps;

  async function attempt(
    run: Routed,
    { target, provider }: Routed['targets'][number],
    messages: ChatMessage[],
    writer: ChunkWriter | undefined,
  ): Promise<Outcome> {
    const { envelope, answer, lease } = run;
    const { jsonMode, maxTokens } = envelope.request;
    Object.assign(answer, { text: '', asked: messages, provider: provider.name, model: target.model });
    if (writer === undefined) answer.unsent = [];
    // Where credits are short, even a complete answer is watched while it grows.
    const watched = run.spendableMicro < maxTokens * run.rates.completionMicro;
    const promptTokens = Math.ceil(messages.reduce((sum, { content }) => sum + content.length, 0) / 4);
    const onText = (text: string) => {
      if (answer.text === '') onFirstText(run);
      answer.text += text;
      lease.need({ promptTokens, completionTokens: Math.ceil(answer.text.length / 4) });
      if (writer === undefined) answer.unsent.push(text);
      else writer.write(text);
    };
    const call: AttemptInput = {
      envelope,
      target,
      provider,
      messages,
      stream: envelope.stream || watched,
      outer: lease.signal,
      betweenTokensMs,
      window: openWindow(policyOf(envelope.tenant.moderation)),
      onText,
    };
    const route = { provider: provider.name, model: target.model };
    const result = await traceAttempt(answer.trace, route, clock.now, () => runAttempt(adapters[provider.kind], call));
    onAttempt(provider.name, 'ok');
    if (result.flagged !== undefined) onFlagged(run, result.flagged);
    if (jsonMode && result.finishReason === 'stop' && !isJsonObject(answer.text))
      throw new NotJsonError('The answer is no JSON object');
    return { finishReason: result.finishReason, usage: result.usage ?? (await estimateUsage(messages, answer.text)) };
  }

  function isReplaceable(run: Routed, writer: ChunkWriter | undefined): boolean {
    return writer === undefined || run.answer.text === '';
  }

  async function tryTarget(
    run: Routed,
    route: { target: Target; provider: Provider },
    writer: ChunkWriter | undefined,
  ): Promise<Outcome> {
    const { lease, envelope } = run;
    const messages = await promptFor(run, route.target);
    let mayAskAgain = true;
    return withRetries(() => attempt(run, route, messages, writer), {
      retries: Math.max(1, route.provider.maxRetries),
      signal: lease.signal,
      mayRetry: (error) => {
        if (!isReplaceable(run, writer) || error instanceof Stopped) return false;
        if (error instanceof NotJsonError) return mayAskAgain;
        return (
          error instanceof ProviderError &&
          error.fault === 'transient' &&
          route.provider.maxRetries > 0 &&
          error.retryAfterMs <= ASKED_WAIT_MAX_MS
        );
      },
      askedWaitMs: (error) => (error instanceof ProviderError ? error.retryAfterMs : 0),
      onRetry: (error, number) => {
        if (error instanceof NotJsonError) mayAskAgain = false;
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
    for (const route of run.targets) {
      try {
        return await tryTarget(run, route, writer);
      } catch (error) {
        last = error;
        if (error instanceof Stopped || error instanceof NotJsonError || !(error instanceof ProviderError)) break;
        onAttempt(route.provider.name, error.fault);
        log.warn('A provider failed.', { requestId: run.envelope.requestId, provider: route.provider.name, error });
        if (error.fault === 'caller' || !isReplaceable(run, writer)) break;
      }
    }
    if (last instanceof NotJsonError)
      throw new ServiceError('model_unavailable', 'The model gave no valid JSON object; try again.', { cause: last });
    throw toCallerError(last);
  }

  return async (run) => {
    const writer = run.envelope.stream ? openWriter(run) : undefined;
    try {
      return { ...run, outcome: await tryTargets(run, writer) };
    } catch (error) {
      // A failed answer that the caller was never shown a part of is as if it had not been.
      if (writer === undefined && !(error instanceof Stopped)) Object.assign(run.answer, { text: '', unsent: [] });
      throw error;
    } finally {
      await writer?.settle();
    }
  };
}
