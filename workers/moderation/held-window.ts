import { endsInHalfCharacter } from '../text-units.ts';
import type { ModerationPolicy, Moderator } from './moderator.ts';
import { FlaggedError, type OutputWindow, type WindowListener, moderationUnavailable } from './moderator.ts';

/**
 * docs/spec/contract.md section 4: a remote backend holds text back for so many characters or so long, whatever comes
 * first.
 */
const HELD_CHARACTERS = 200;
const HELD_MS = 500;
/** In UTF-16 units: what was released last is read again with what follows, for a phrase that lies across the two. */
const OVERLAP = 100;

/**
 * The window of a backend that is asked over the network: collects text, has it checked, and releases it when it has
 * passed. One check is under way at a time; what comes meanwhile waits for the next. Fails closed.
 */
export function createHeldWindow(
  moderator: Pick<Moderator, 'check'>,
  policy: ModerationPolicy,
  listener: WindowListener,
): OutputWindow {
  const checks = new AbortController();
  let held = '';
  let passed = '';
  /** The held text has waited for its time. */
  let due = false;
  let ending = false;
  let over = false;
  let timer: NodeJS.Timeout | undefined;
  let checking: Promise<void> | undefined;

  const onAbort = () => {
    checks.abort(listener.signal.reason);
  };
  listener.signal.addEventListener('abort', onAbort, { once: true });

  function close(): void {
    over = true;
    clearTimeout(timer);
    listener.signal.removeEventListener('abort', onAbort);
    checks.abort();
  }

  function stop(reason: Error): void {
    close();
    listener.stop(reason);
  }

  function show(text: string): void {
    try {
      listener.release(text);
    } catch (error) {
      // Nobody awaits a check that was started by a timer.
      stop(asError(error));
    }
  }

  /** All that is held, in whole characters. */
  function take(): string {
    const end = !ending && endsInHalfCharacter(held) ? held.length - 1 : held.length;
    const text = held.slice(0, end);
    held = held.slice(end);
    return text;
  }

  async function check(text: string): Promise<void> {
    const read = passed + text;
    const verdict = await moderator
      .check(read, { policy, signal: checks.signal })
      .catch((cause: unknown) =>
        listener.signal.aborted ? asError(listener.signal.reason) : moderationUnavailable(cause),
      );
    checking = undefined;
    if (over) return;
    if (verdict instanceof Error) {
      stop(verdict);
    } else if (verdict.flagged) {
      stop(new FlaggedError(verdict));
    } else {
      passed = tailOf(read);
      show(text);
      advance();
    }
  }

  /** Starts the next check where one is due. */
  function advance(): void {
    if (over || checking !== undefined || held === '') return;
    if (ending || due || held.length >= HELD_CHARACTERS) {
      clearTimeout(timer);
      timer = undefined;
      due = false;
      const text = take();
      if (text !== '') checking = check(text);
      return;
    }
    timer ??= setTimeout(() => {
      due = true;
      advance();
    }, HELD_MS);
  }

  return {
    push(delta) {
      held += delta;
      advance();
    },
    async end() {
      ending = true;
      advance();
      while (checking !== undefined) await checking;
    },
    close,
  };
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('The call was ended', { cause: reason });
}

/** The end of a text, not beginning with half a character. */
function tailOf(text: string): string {
  const tail = text.slice(-OVERLAP);
  const first = tail.charCodeAt(0);
  return first >= 0xdc00 && first < 0xe000 ? tail.slice(1) : tail;
}
