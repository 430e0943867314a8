import { endsInHalfCharacter } from './text-units.ts';
import type { ModerationPolicy, Moderator } from './moderator.ts';
import { FlaggedError, type OutputWindow, type WindowListener, moderationUnavailable } from './moderator.ts';

/** A remote backend's text is held back up to this length or time, whichever comes first (docs/spec.md#moderation). */
const HELD_CHARACTERS = 200;
const HELD_MS = 500;
/** UTF-16 units of released text that are checked again with what follows, for what only several sentences say. */
const OVERLAP = 1_000;

function createHeldText() {
  let held = '';
  let passed = '';
  /** The latest check has read this much, in UTF-16 units. */
  let lastRead = 0;
  /** The held text has waited for HELD_MS. */
  let isDue = false;
  let isEnding = false;
  return {
    add: (delta: string): void => void (held += delta),
    waited: (): void => void (isDue = true),
    end: (): void => void (isEnding = true),
    isEmpty: (): boolean => held === '',
    pass: (text: string): void => void (passed += text),

    /** Takes all held text, in whole characters, once enough of it is held. Undefined: it may wait. */
    take(): string | undefined {
      if (held === '' || !(isEnding || isDue || held.length >= HELD_CHARACTERS)) return undefined;
      isDue = false;
      const end = !isEnding && endsInHalfCharacter(held) ? held.length - 1 : held.length;
      const text = held.slice(0, end);
      held = held.slice(end);
      return text;
    },

    /** The text that a check of `text` reads; the last check reads the whole answer. */
    readWith(text: string): string {
      const read = (isEnding && held === '' ? passed : tailOf(passed)) + text;
      lastRead = read.length;
      return read;
    },

    isUnreadAsWhole: (): boolean => passed.length > lastRead,
  };
}

/**
 * Collects text for a remote backend, and releases it once it has passed. Checks run one at a time; text that arrives
 * meanwhile waits for the next. Fails closed.
 */
export function createHeldWindow(
  moderator: Pick<Moderator, 'check'>,
  policy: ModerationPolicy,
  listener: WindowListener,
): OutputWindow {
  const closing = new AbortController();
  const signal = AbortSignal.any([listener.signal, closing.signal]);
  const answer = createHeldText();
  let over = false;
  let timer: NodeJS.Timeout | undefined;
  let checking: Promise<void> | undefined;

  function close(): void {
    over = true;
    clearTimeout(timer);
    closing.abort();
  }

  function stop(reason: Error): void {
    close();
    listener.stop(reason);
  }

  function show(text: string): void {
    try {
      listener.release(text);
    } catch (error) {
      // A timer's check is awaited nowhere.
      stop(asError(error));
    }
  }

  async function check(text: string): Promise<void> {
    const verdict = await moderator
      .check(answer.readWith(text), { policy, signal })
      .catch((cause: unknown) =>
        listener.signal.aborted ? asError(listener.signal.reason) : moderationUnavailable(cause),
      );
    checking = undefined;
    if (over) return;
    if (verdict instanceof Error || verdict.flagged) {
      stop(verdict instanceof Error ? verdict : new FlaggedError(verdict));
      return;
    }
    answer.pass(text);
    if (text !== '') show(text);
    advance();
  }

  function advance(): void {
    if (over || checking !== undefined || answer.isEmpty()) return;
    const text = answer.take();
    if (text === undefined) {
      timer ??= setTimeout(() => {
        answer.waited();
        advance();
      }, HELD_MS);
      return;
    }
    clearTimeout(timer);
    timer = undefined;
    if (text !== '') checking = check(text);
  }

  return {
    push(delta) {
      answer.add(delta);
      advance();
    },
    async end() {
      answer.end();
      advance();
      while (checking !== undefined) await checking;
      // Text that has been shown cannot be taken back, but the answer ends as flagged.
      if (!over && answer.isUnreadAsWhole()) await check('');
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
