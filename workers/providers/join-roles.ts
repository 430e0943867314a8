import type { ChatMessage, Role } from '../../shared/contracts/chat-request.ts';

/** Messages that a provider may make one text of. */
export interface Row<Message extends ChatMessage = ChatMessage> {
  role: Role;
  messages: Message[];
}

/** What stands between two messages that are joined. */
export const BETWEEN_JOINED = '\n\n';

export function textOfRow({ messages }: Row): string {
  return messages.map(({ content }) => content).join(BETWEEN_JOINED);
}

/**
 * Messages as an adapter may join them at the most: all system messages are one row, and the others, blank ones left
 * out, are a row wherever neighbours have one role. Moderation reads the same rows, so that no adapter can make a text
 * that was not read.
 */
export function joinRoles<Message extends ChatMessage>(
  messages: readonly Message[],
): { system: Row<Message>; turns: Row<Message>[] } {
  const system: Row<Message> = { role: 'system', messages: [] };
  const turns: Row<Message>[] = [];
  for (const message of messages) {
    if (message.content.trim() === '') continue;
    const last = message.role === 'system' ? system : turns.at(-1);
    if (last?.role === message.role) last.messages.push(message);
    else turns.push({ role: message.role, messages: [message] });
  }
  return { system, turns };
}
