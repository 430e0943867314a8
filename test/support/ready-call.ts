import { wordsOf } from '../../shared/contracts/events.ts';
import { createLocalModerator } from '../../workers/moderation/local/local-moderator.ts';
import { openLocalWindow } from '../../workers/moderation/local/phrase-window.ts';
import type { ProviderCallInput } from '../../workers/pipeline/run-provider-call.ts';
import { plainEnvelope } from './plain-envelope.ts';

const moderator = createLocalModerator();

/** One call of a provider, ready to run. */
export interface ReadyCall {
  input: ProviderCallInput;
  /** What was released so far. */
  texts: string[];
  stop(reason: Error): void;
}

/** First token within 100 ms, then no silence of 50 ms, the whole within 1 s, unless told otherwise. */
export function readyCall(more: Partial<ProviderCallInput> = {}): ReadyCall {
  const texts: string[] = [];
  const controller = new AbortController();
  const input: ProviderCallInput = {
    envelope: plainEnvelope(),
    target: { provider: 'p', model: 'm', weight: 1, priority: 1, contextWindow: 1_000 },
    provider: {
      name: 'p',
      kind: 'openai',
      baseUrl: 'http://127.0.0.1:1/v1',
      timeoutMs: 1_000,
      firstTokenTimeoutMs: 100,
      maxRetries: 0,
    },
    messages: [{ role: 'user', content: 'Hi' }],
    stream: true,
    outer: controller.signal,
    firstTokenMs: 100,
    silenceMs: 50,
    openWindow: (listener) => openLocalWindow(moderator, undefined, listener),
    onIncrement: (increment) => texts.push(wordsOf(increment)),
    ...more,
  };
  return {
    input,
    texts,
    stop: (reason) => {
      controller.abort(reason);
    },
  };
}
