import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import type { Usage } from '../../shared/contracts/events.ts';
import type { RequestEnvelope } from '../../shared/contracts/jobs.ts';
import type { Provider, Target } from '../../shared/domain/routing/routing.ts';
import type { OutputWindow } from '../moderation/output-window.ts';
import type { ModerationVerdict } from '../moderation/moderator.ts';
import type { ProviderAdapter, ProviderEvent } from '../providers/provider.ts';
import { startAttemptClock } from './attempt-clock.ts';

export interface AttemptInput {
  envelope: RequestEnvelope;
  target: Target;
  provider: Provider;
  messages: readonly ChatMessage[];
  /** Ask the provider for a stream. */
  stream: boolean;
  outer: AbortSignal;
  /** Silence between two pieces of text that counts as a hung provider. */
  betweenTokensMs: number;
  window: OutputWindow;
  /** Takes released text; called in order. */
  onText: (text: string) => void;
}

export interface AttemptResult {
  finishReason: 'stop' | 'length' | 'content_filter';
  /** Undefined: the provider did not say. */
  usage: Usage | undefined;
  /** Set when the answer was cut off by moderation. */
  flagged?: ModerationVerdict;
}

/** A provider that keeps its connection open after the end of its answer gets this long before it is cut. */
const DRAIN_MS = 2_000;

function callOf({ envelope, target, messages, stream }: AttemptInput, signal: AbortSignal) {
  const { requestId, request } = envelope;
  return {
    requestId,
    messages,
    model: target.model,
    maxTokens: request.maxTokens,
    jsonMode: request.jsonMode,
    stream,
    signal,
    ...(request.sampling === undefined ? {} : { sampling: request.sampling }),
  };
}

/** Lets the call read to the end of its body, so that its connection can be used again. */
function drain(events: AsyncIterator<ProviderEvent>): void {
  const timer = setTimeout(() => void events.return?.(), DRAIN_MS);
  void events
    .next()
    .catch(() => undefined)
    .finally(() => {
      clearTimeout(timer);
    });
}

/** One call of one provider: its text through the moderation window. Throws a ProviderError or the signal's reason. */
export async function runAttempt(adapter: ProviderAdapter, input: AttemptInput): Promise<AttemptResult> {
  const { provider, window, onText } = input;
  // A complete answer comes in one piece: its first token is its last.
  const firstTokenMs = input.stream ? provider.firstTokenTimeoutMs : provider.timeoutMs;
  const clock = startAttemptClock(input.outer, {
    firstTokenMs,
    betweenTokensMs: input.betweenTokensMs,
    totalMs: provider.timeoutMs,
  });
  const events = adapter.generate(provider, callOf(input, clock.signal))[Symbol.asyncIterator]();
  const release = (step: { release: string; flagged?: ModerationVerdict }) => {
    if (step.release !== '') onText(step.release);
    return step.flagged;
  };
  try {
    for (;;) {
      const next = await events.next();
      if (next.done === true) throw new Error('An adapter ended without an end event');
      const event = next.value;
      clock.tick();
      if (event.kind === 'text') {
        const flagged = release(window.push(event.text));
        if (flagged === undefined) continue;
        void events.return?.(undefined);
        return { finishReason: 'content_filter', usage: undefined, flagged };
      }
      const flagged = release(window.end());
      drain(events);
      if (flagged !== undefined) return { finishReason: 'content_filter', usage: event.usage, flagged };
      return { finishReason: event.finishReason, usage: event.usage };
    }
  } finally {
    clock.stop();
  }
}
