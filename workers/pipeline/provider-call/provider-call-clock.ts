import { ProviderError } from '../../providers/provider.ts';

export interface ProviderCallTimes {
  /** Silence before the first text. Anything else that the provider sends meanwhile restarts the limit. */
  firstTokenMs: number;
  betweenTokensMs: number;
  totalMs: number;
}

/** For each so many tokens of the prompt, the limit for the first token grows by itself once more, up to LONGEST times. */
const TOKENS_OF_A_LIMIT = 3_000;
const LONGEST = 4;

/**
 * The limit for the first token of a prompt, by a provider's limit for one that takes no time to read: small servers
 * read some 150 tokens a second, so 15 s become 35 s for 4,000 tokens, and one minute at most
 * (docs/spec.md#complete-requests).
 */
export function firstTokenLimit(limitMs: number, promptTokens: number): number {
  return Math.round(limitMs * Math.min(LONGEST, 1 + promptTokens / TOKENS_OF_A_LIMIT));
}

/** A provider took longer than it may. */
export class ProviderTimeout extends ProviderError {
  constructor(what: string, ms: number) {
    super('silent', `The provider exceeded its time limit: no ${what} within ${ms} ms`);
  }
}

export interface ProviderCallClock {
  /** The call's own signal: aborts at a time limit, or when `outer` does, with its reason. */
  signal: AbortSignal;
  /** Something has arrived, text or not. */
  touch(): void;
  /** Text has arrived. */
  tick(): void;
  /** The answer is complete: what follows, such as the last verdict, does not count as the provider's time. */
  rest(): void;
  /** Ends the call for another reason, even after `stop`. */
  abort(reason: Error): void;
  /** Ends all time limits. */
  stop(): void;
}

/** Time limits of one provider call: first token, between tokens, total. */
export function startProviderCallClock(
  outer: AbortSignal,
  { firstTokenMs, betweenTokensMs, totalMs }: ProviderCallTimes,
): ProviderCallClock {
  const controller = new AbortController();
  const abortAfter = (ms: number, what: string) =>
    setTimeout(() => {
      controller.abort(new ProviderTimeout(what, ms));
    }, ms);
  const onOuter = () => {
    controller.abort(outer.reason);
  };
  if (outer.aborted) onOuter();
  outer.addEventListener('abort', onOuter, { once: true });
  const total = abortAfter(totalMs, 'end of the answer');
  let silence = abortAfter(firstTokenMs, 'first token');
  let ticked = false;
  return {
    signal: controller.signal,
    touch() {
      if (!ticked) silence.refresh();
    },
    tick() {
      if (ticked) {
        silence.refresh();
        return;
      }
      ticked = true;
      clearTimeout(silence);
      silence = abortAfter(betweenTokensMs, 'next token');
    },
    rest() {
      clearTimeout(total);
      clearTimeout(silence);
    },
    abort(reason) {
      controller.abort(reason);
    },
    stop() {
      clearTimeout(total);
      clearTimeout(silence);
      outer.removeEventListener('abort', onOuter);
    },
  };
}
