import Joi from 'joi';

import { CHAT_LIMITS, ROLES, textUpTo } from '../../shared/contracts/chat-request.ts';
import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import { isRecord } from '../../shared/contracts/parse.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';

/** OpenAI's messages, which `POST /chat/completions` accepts in addition to the plain ones of the chat routes. */

const textPart = Joi.object({ type: Joi.string().valid('text').required(), text: Joi.string().allow('', null) });

const messageWithText = Joi.object({
  role: Joi.string()
    .valid(...ROLES, 'developer')
    .description('`developer` is another name for `system`.')
    .required(),
  content: Joi.alternatives(textUpTo(CHAT_LIMITS.contentMax), Joi.array().items(textPart.unknown(true)).min(1))
    .description(`Text, or parts of text that together are 1 to ${String(CHAT_LIMITS.contentMax)} characters.`)
    .required(),
}).unknown(true);

const messageWithoutText = Joi.object({
  role: Joi.string().valid('assistant').required(),
  content: Joi.alternatives(Joi.valid('', null), Joi.array().max(0)).description(
    'An answer without text is left out of the conversation.',
  ),
  tool_calls: Joi.array().max(0).allow(null),
  function_call: Joi.valid(null),
}).unknown(true);

/** The messages as they come over the wire, for the document. A schema cannot say that at least one must have text. */
export const wireMessagesSchema = Joi.array()
  .max(CHAT_LIMITS.messagesMax)
  .min(1)
  .items(messageWithText, messageWithoutText)
  .description('The conversation, oldest message first. At least one message has text.')
  .required();

/** Stands for an answer without text until all messages are checked, so that errors name the caller's own indexes. */
const WITHOUT_TEXT: ChatMessage = Object.freeze({ role: 'assistant', content: '-' });

function textOfPart(part: unknown, param: string): string {
  if (isRecord(part) && part['type'] === 'text') {
    const text = part['text'] ?? '';
    if (typeof text === 'string') return text;
  }
  throw new ServiceError(
    'invalid_request',
    `\`${param}\` may hold text parts only; images and audio are not supported.`,
    { param },
  );
}

function refuseTools(param: string): never {
  throw new ServiceError(
    'invalid_request',
    `Calls and results of tools are not supported in \`messages\`; leave \`${param}\` out, or say it as text of the user.`,
    { param },
  );
}

/** Without this, an answer with only tool calls would be dropped, and the model would not know what it asked for. */
function refuseToolCalls({ tool_calls: calls, function_call: call }: Record<string, unknown>, param: string): void {
  if (Array.isArray(calls) ? calls.length > 0 : (calls ?? null) !== null) refuseTools(`${param}.tool_calls`);
  if ((call ?? null) !== null) refuseTools(`${param}.function_call`);
}

/**
 * Converts OpenAI's other ways to write a message: content in parts, `developer` for what used to be `system`, and an
 * answer without text. This service gives such answers too, and clients that keep their conversation send them back.
 */
export function plainMessage(message: unknown, index: number): unknown {
  if (!isRecord(message)) return message;
  const param = `messages[${index}]`;
  const { role } = message;
  if (role === 'tool' || role === 'function') refuseTools(`${param}.role`);
  const given = message['content'];
  const content: unknown = Array.isArray(given)
    ? given.map((part) => textOfPart(part, `${param}.content`)).join('')
    : given;
  if (role === 'assistant' && (content === '' || (content ?? null) === null)) {
    refuseToolCalls(message, param);
    return WITHOUT_TEXT;
  }
  return { ...message, role: role === 'developer' ? 'system' : role, content };
}

/** The messages that the model gets. Throws `invalid_request` if none has text. */
export function messagesWithText(messages: readonly ChatMessage[]): ChatMessage[] {
  const spoken = messages.filter((message) => message !== WITHOUT_TEXT);
  if (spoken.length > 0) return spoken.map(({ role, content }) => ({ role, content }));
  throw new ServiceError('invalid_request', '`messages` must have at least one message with text.', {
    param: 'messages',
  });
}
