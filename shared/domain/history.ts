import type { ChatMessage } from '../contracts/chat-request.ts';

/** Per entity and tenant (docs/spec.md#history). */
export const HISTORY_MESSAGES_MAX = 50;

/**
 * An entity remembers text of its user and of answers. Calls of tools and their results are left out, because one
 * without the other makes no sense to a model, and so are images and files.
 */
function isRemembered({ role, content, sent }: ChatMessage): boolean {
  return role !== 'system' && role !== 'tool' && content !== '' && sent?.['tool_calls'] === undefined;
}

/** MongoDB keeps UTF-8, which turns half a surrogate pair into a replacement character. */
function isStoredAs(stored: string, sent: string): boolean {
  return stored === sent || (stored.length === sent.length && stored === sent.toWellFormed());
}

function same(stored: ChatMessage | undefined, sent: ChatMessage | undefined): boolean {
  return (
    stored !== undefined && sent !== undefined && stored.role === sent.role && isStoredAs(stored.content, sent.content)
  );
}

function matches(
  history: readonly ChatMessage[],
  from: number,
  submitted: readonly ChatMessage[],
  at: number,
): boolean {
  for (let index = from; index < history.length; index += 1) {
    if (!same(history[index], submitted[at + index - from])) return false;
  }
  return true;
}

/** Counts the submitted messages (without `system`) that the history already has, from their beginning. */
function overlapOf(history: readonly ChatMessage[], submitted: readonly ChatMessage[]): number {
  for (let length = Math.min(history.length, submitted.length); length > 0; length -= 1) {
    if (matches(history, history.length - length, submitted, 0)) return length;
  }
  // A caller that resends everything sends more than a full history holds: all of the history then lies further back.
  if (history.length < HISTORY_MESSAGES_MAX) return 0;
  for (let at = submitted.length - history.length; at > 0; at -= 1) {
    if (matches(history, 0, submitted, at)) return at + history.length;
  }
  return 0;
}

/**
 * Joins stored history and submitted messages (docs/spec.md#history): where these begin with a copy of its end, the
 * overlap is sent and stored once. Returns the earlier messages, oldest first, the submitted ones beyond them, and
 * those of these to store with the answer.
 */
export function mergeHistory(history: readonly ChatMessage[], submitted: readonly ChatMessage[]) {
  const spoken = submitted.filter(isRemembered);
  const overlap = overlapOf(history, spoken);
  let end = 0;
  for (let seen = 0; seen < overlap; end += 1) {
    const message = submitted[end];
    if (message === undefined || isRemembered(message)) seen += 1;
  }
  const known = submitted.slice(0, end).filter(({ role }) => role !== 'system');
  const isSame = known.length === overlap && known.every(({ sent }) => sent === undefined);
  // The caller's own copy replaces the stored one where it says more; beyond a full history it is the longer one.
  const head = isSame ? known.slice(0, Math.max(0, overlap - history.length)) : [];
  const stored = isSame ? history : history.slice(0, Math.max(0, history.length - overlap));
  const fresh = submitted.filter((message, at) => message.role === 'system' || at >= end);
  return {
    history: [...head, ...stored, ...(isSame ? [] : known)],
    submitted: fresh,
    unseen: fresh.filter(isRemembered),
  };
}
