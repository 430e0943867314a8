import type { Lease } from '../stage.ts';
import { amountWith, estimateTokens, fittingPart } from './estimate-tokens.ts';

/** Hands the text of an answer on, in order, as far as it is granted. */
export interface ReleaseGate {
  push(text: string): void;
  /** Resolves when all that was pushed is out. Throws why the lease was stopped, where that came first. */
  end(): Promise<void>;
  /** Nothing comes out any more, granted or not: its call is over, and another one may have taken its place. */
  close(): void;
}

/** So few tokens before its end a grant is enlarged, or an eighth of what is out: then text need not wait for it. */
const LOW_TOKENS = 32;
const LOW_PART = 8;
/** After a grant that Redis could not answer. */
const RETRY_MS = 1_000;

/**
 * Balance, budget and allowance bound what is released, however many requests run (docs/spec/contract.md section 8,
 * Bounds). Text beyond the grant waits for the next one; where that does not cover it, the lease ends as exhausted,
 * with as much of the text as the grant has room for.
 */
export function openReleaseGate(
  lease: Pick<Lease, 'granted' | 'grant' | 'exhaust' | 'signal'>,
  emit: (text: string) => void,
): ReleaseGate {
  const waiting: string[] = [];
  const over = Promise.withResolvers<undefined>();
  over.promise.catch(() => undefined);
  let out = { bytes: 0, pieces: 0 };
  let ending = false;
  let closed = false;
  let asking = false;
  /** The largest need a grant was asked for, and what was granted when one was last asked ahead of need. */
  let askedFor = 0;
  let aheadAt = -1;

  function send(text: string): void {
    out = amountWith(out, text);
    emit(text);
  }

  function exhaust(): void {
    const part = fittingPart(out, waiting[0] ?? '', lease.granted());
    waiting.length = 0;
    if (part !== '') send(part);
    lease.exhaust();
  }

  function ask(tokens: number): void {
    if (asking) return;
    asking = true;
    lease.grant(tokens).then(
      () => {
        asking = false;
        askedFor = Math.max(askedFor, tokens);
        pump();
      },
      () => {
        // The lease has told the log. Nothing was refused, so nothing ends.
        setTimeout(() => {
          asking = false;
          pump();
        }, RETRY_MS);
      },
    );
  }

  function askAhead(): void {
    const [released, granted] = [estimateTokens(out), lease.granted()];
    if (granted - released >= LOW_TOKENS + released / LOW_PART || aheadAt === granted) return;
    aheadAt = granted;
    ask(released + LOW_TOKENS);
  }

  function pump(): void {
    if (closed) return;
    for (let next = waiting[0]; next !== undefined && !lease.signal.aborted; next = waiting[0]) {
      const needed = estimateTokens(amountWith(out, next));
      if (needed > lease.granted()) {
        if (needed <= askedFor) exhaust();
        else ask(needed);
        return;
      }
      waiting.shift();
      send(next);
    }
    if (lease.signal.aborted) return;
    if (ending) over.resolve(undefined);
    else askAhead();
  }

  lease.signal.addEventListener('abort', () => {
    // A Stopped, see Lease.
    over.reject(lease.signal.reason as Error);
  });

  return {
    push(text) {
      waiting.push(text);
      if (!asking || waiting.length === 1) pump();
    },
    end() {
      ending = true;
      if (lease.signal.aborted) over.reject(lease.signal.reason as Error);
      else pump();
      return over.promise;
    },
    close() {
      closed = true;
    },
  };
}
