import type { ChatMessage, Role } from '../../shared/contracts/chat-request.ts';
import { textOf } from '../../shared/contracts/message-text.ts';

/** Messages that an adapter may join into one text. */
export interface Row<Message extends ChatMessage = ChatMessage> {
  role: Role;
  messages: Message[];
}

/** Separates two messages that are joined. */
export const BETWEEN_JOINED = '\n\n';

export function textOfRow({ messages }: Row): string {
  return messages.map(textOf).join(BETWEEN_JOINED);
}

/**
 * The most that an adapter may join: all system messages form one row; of the others, without blank ones, consecutive
 * messages of one role form a row. Moderation reads the same rows, so no adapter can put together a text that
 * moderation has not read.
 */
export function joinRoles<Message extends ChatMessage>(
  messages: readonly Message[],
): { system: Row<Message>; turns: Row<Message>[] } {
  const system: Row<Message> = { role: 'system', messages: [] };
  const turns: Row<Message>[] = [];
  for (const message of messages) {
    if (message.content.trim() === '' && message.sent === undefined) continue;
    const role = message.role === 'tool' ? 'user' : message.role;
    const last = role === 'system' ? system : turns.at(-1);
    if (last?.role === role) last.messages.push(message);
    else turns.push({ role, messages: [message] });
  }
  return { system, turns };
}
