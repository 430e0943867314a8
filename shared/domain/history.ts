import type { ChatMessage } from '../contracts/chat-request.ts';

/** Stored messages per entity and tenant. Source: docs/spec.md#history. */
export const HISTORY_MESSAGES_MAX = 50;

export interface MergedConversation {
  /** Earlier messages, oldest first. */
  history: ChatMessage[];
  /** The submitted messages that are not in the history. */
  submitted: ChatMessage[];
  /** Those of them that are stored with the answer; `system` messages never are. */
  unseen: ChatMessage[];
}

/** MongoDB keeps UTF-8: half a surrogate pair comes back from it as a replacement character. */
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

/** How many of the submitted messages (`system` aside) the history already has, counted from their beginning. */
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
 * Joins stored history and submitted messages (docs/spec.md#history): if the submitted ones begin with a copy
 * of the end of the history, the overlap is sent and stored once.
 */
export function mergeHistory(history: readonly ChatMessage[], submitted: readonly ChatMessage[]): MergedConversation {
  const spoken = submitted.filter((message) => message.role !== 'system');
  const overlap = overlapOf(history, spoken);
  // Beyond a full history the caller's own copy is the longer one, so its head is sent too.
  const forgotten = Math.max(0, overlap - history.length);
  let seen = 0;
  const fresh = submitted.filter((message) => {
    if (message.role === 'system') return true;
    seen += 1;
    return seen > overlap;
  });
  return {
    history: [...spoken.slice(0, forgotten), ...history],
    submitted: fresh,
    unseen: fresh.filter((message) => message.role !== 'system'),
  };
}
