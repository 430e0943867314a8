import { endsInHalfCharacter } from './text-units.ts';
import type { ModerationPolicy, Moderator } from './moderator.ts';
import { FlaggedError, type OutputWindow, type WindowListener, moderationUnavailable } from './moderator.ts';

/**
 * docs/spec.md#moderation: with a remote backend, text is held back up to this length or this time, whichever
 * is reached first.
 */
const HELD_CHARACTERS = 200;
const HELD_MS = 500;
/**
 * In UTF-16 units: this much released text is checked again with what follows, for what only several sentences say. The
 * last check reads the whole answer.
 */
const OVERLAP = 1_000;

/**
 * The window of a remote backend: collects text, has it checked, and releases it once it has passed. Only one check
 * runs at a time; text that arrives meanwhile waits for the next one. Fails closed.
 */
export function createHeldWindow(
  moderator: Pick<Moderator, 'check'>,
  policy: ModerationPolicy,
  listener: WindowListener,
): OutputWindow {
  const checks = new AbortController();
  let held = '';
  let passed = '';
  /** So much text the latest check has read, in UTF-16 units. */
  let lastRead = 0;
  /** The held text has waited for HELD_MS. */
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

  /** Takes all held text, in whole characters. */
  function take(): string {
    const end = !ending && endsInHalfCharacter(held) ? held.length - 1 : held.length;
    const text = held.slice(0, end);
    held = held.slice(end);
    return text;
  }

  async function check(text: string): Promise<void> {
    const read = (ending && held === '' ? passed : tailOf(passed)) + text;
    lastRead = read.length;
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
      passed += text;
      if (text !== '') show(text);
      advance();
    }
  }

  /** Starts the next check if one is due. */
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
      // What has been shown cannot be taken back, but the answer ends as flagged.
      if (!over && passed.length > lastRead) await check('');
    },
    close,
  };
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('The call was ended', { cause: reason });
}

/** The end of a text, without half a character at its beginning. */
function tailOf(text: string): string {
  const tail = text.slice(-OVERLAP);
  const first = tail.charCodeAt(0);
  return first >= 0xdc00 && first < 0xe000 ? tail.slice(1) : tail;
}
