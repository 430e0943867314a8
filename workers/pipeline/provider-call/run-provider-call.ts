import type { ChatMessage } from '../../../shared/contracts/chat-request.ts';
import type { Usage } from '../../../shared/contracts/events.ts';
import type { RequestEnvelope } from '../../../shared/contracts/jobs.ts';
import type { Provider, Target } from '../../../shared/domain/routing/routing.ts';
import { FlaggedError } from '../../moderation/moderator.ts';
import type { ModerationVerdict, OpenWindow } from '../../moderation/moderator.ts';
import type { ProviderAdapter, ProviderEvent } from '../../providers/provider.ts';
import { ProviderTimeout, startProviderCallClock } from './provider-call-clock.ts';
import type { ProviderCallClock } from './provider-call-clock.ts';

export interface ProviderCallInput {
  envelope: RequestEnvelope;
  target: Target;
  provider: Provider;
  messages: readonly ChatMessage[];
  /** Ask the provider for a stream. */
  stream: boolean;
  outer: AbortSignal;
  /** Silence between two pieces of text that counts as a hung provider. */
  betweenTokensMs: number;
  openWindow: OpenWindow;
  /** Takes released text; called in order. */
  onText: (text: string) => void;
}

export interface ProviderCallResult {
  finishReason: 'stop' | 'length' | 'content_filter';
  /** Undefined: the provider did not say. */
  usage: Usage | undefined;
  /** Set when the answer was cut off by moderation. */
  flagged?: ModerationVerdict;
}

/** A provider that keeps its connection open after the end of its answer gets this long before it is cut. */
const DRAIN_MS = 2_000;

function callOf({ envelope, target, messages, stream }: ProviderCallInput, clock: ProviderCallClock) {
  const { requestId, request } = envelope;
  return {
    requestId,
    messages,
    model: target.model,
    maxTokens: request.maxTokens,
    jsonMode: request.jsonMode,
    stream,
    signal: clock.signal,
    onBytes: clock.touch,
    ...(request.sampling === undefined ? {} : { sampling: request.sampling }),
  };
}

/** Lets the call read to the end of its body, so that its connection can be used again. */
async function drain(events: AsyncIterator<ProviderEvent>, clock: ProviderCallClock): Promise<void> {
  // `return` would wait for a read under way, and so for a provider that is silent: only an abort ends that.
  const timer = setTimeout(() => {
    clock.abort(new ProviderTimeout('end of the body', DRAIN_MS));
  }, DRAIN_MS);
  try {
    await events.next();
  } catch {
    // The answer is whole: how its connection ends is of no interest.
  } finally {
    clearTimeout(timer);
  }
}

/** Closes a call that has not come to its end. */
async function close(events: AsyncIterator<ProviderEvent>): Promise<void> {
  try {
    await events.return?.();
  } catch {
    // What it had to say has been heard.
  }
}

/** One call of one provider: its text through the moderation window. Throws a ProviderError or the signal's reason. */
export async function runProviderCall(adapter: ProviderAdapter, input: ProviderCallInput): Promise<ProviderCallResult> {
  const { provider } = input;
  const clock = startProviderCallClock(input.outer, {
    // A complete answer comes in one piece: its first token is its last.
    firstTokenMs: input.stream ? provider.firstTokenTimeoutMs : provider.timeoutMs,
    betweenTokensMs: input.betweenTokensMs,
    totalMs: provider.timeoutMs,
  });
  const state: { ended: boolean; stopped?: Error } = { ended: false };
  const window = input.openWindow({
    signal: clock.signal,
    release: input.onText,
    stop(reason) {
      state.stopped = reason;
      // Moderation may stop the call while it waits for the provider's next words.
      if (!state.ended) clock.abort(reason);
    },
  });
  let events: AsyncIterator<ProviderEvent> | undefined;
  try {
    events = adapter.generate(provider, callOf(input, clock))[Symbol.asyncIterator]();
    for (;;) {
      const next = await events.next();
      if (next.done === true) throw new Error('An adapter ended without an end event');
      const event = next.value;
      clock.tick();
      if (event.kind === 'text') {
        window.push(event.text);
        if (state.stopped !== undefined) throw state.stopped;
      } else {
        state.ended = true;
        clock.rest();
        await window.end();
        if (state.stopped !== undefined) throw state.stopped;
        return { finishReason: event.finishReason, usage: event.usage };
      }
    }
  } catch (error) {
    const cause = state.stopped ?? error;
    if (!(cause instanceof FlaggedError)) throw cause;
    // The provider's own count has what was held back, too: what was shown is charged, whenever the verdict comes.
    return { finishReason: 'content_filter', usage: undefined, flagged: cause.verdict };
  } finally {
    window.close();
    clock.stop();
    if (events !== undefined) void (state.ended ? drain(events, clock) : close(events));
  }
}
