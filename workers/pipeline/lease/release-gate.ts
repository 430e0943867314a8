import type { Lease } from '../stage.ts';
import { amountWith, estimateTokens, fittingPart } from './estimate-tokens.ts';

/** Passes on the text of an answer, in order, as far as it is granted. */
export interface ReleaseGate {
  push(text: string): void;
  /** Resolves when all pushed text is out. Rejects with the Stopped of the lease if that comes first. */
  end(): Promise<void>;
  /** Releases nothing more, granted or not: the provider call has ended, and another may have taken its place. */
  close(): void;
}

/** More is asked for when only this many granted tokens are left, plus an eighth of those released. */
const LOW_TOKENS = 32;
const LOW_PART = 8;
/** The pause after a request for a grant that Redis did not answer. */
const RETRY_MS = 1_000;

/**
 * Keeps released text within balance, budget and allowance, however many requests run (docs/spec.md#holds).
 * Text beyond the grant waits for the next grant. If that does not cover it either, as much text as the grant
 * covers is released, and the lease ends as exhausted.
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
  /** The largest number of tokens a grant was asked for. */
  let askedFor = 0;
  /** What was granted when more was last asked for ahead of need. */
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
        // The lease has logged the failure. Nothing was refused, so the answer continues.
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
    // The reason is a Stopped: see Lease.
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
