import { CHAT_LIMITS, chatBodySchema } from './chat-request.ts';
import type { ChatMessage, ChatRequest, Tier } from './chat-request.ts';
import { checkAgainst } from './parse.ts';

/** The checked shape of the wire body: what `chatBodySchema` lets through. */
interface ChatBody {
  messages: ChatMessage[];
  model?: Tier;
  max_tokens?: number;
  entity_id?: string;
  subject?: string;
  grade?: string;
  metadata?: object;
  json_mode?: boolean;
}

const BODY_FIELDS: ReadonlySet<string> = new Set([
  'messages',
  'model',
  'max_tokens',
  'entity_id',
  'subject',
  'grade',
  'metadata',
  'json_mode',
]);
const MESSAGE_FIELDS: ReadonlySet<string> = new Set(['role', 'content']);

export interface ParsedChatBody {
  request: ChatRequest;
  /** Names of the fields that nobody reads, for the header `X-Ignored-Fields` (contract.md section 2). */
  ignoredFields: string[];
}

/** The names in `messages[]` and beside the known fields that the service does not read. */
export function ignoredIn(body: object, messages: readonly object[], known: ReadonlySet<string>): string[] {
  const ignored = new Set(Object.keys(body).filter((name) => !known.has(name)));
  for (const message of messages) {
    for (const name of Object.keys(message)) if (!MESSAGE_FIELDS.has(name)) ignored.add(`messages[].${name}`);
  }
  return [...ignored];
}

/** Throws `invalid_request`, `message_too_long` or `too_many_messages`. */
export function parseChatBody(input: unknown): ParsedChatBody {
  checkAgainst(chatBodySchema, input);
  // The schema has just checked every field of this shape.
  const body = input as ChatBody;
  const request: ChatRequest = {
    messages: body.messages.map(({ role, content }) => ({ role, content })),
    maxTokens: body.max_tokens ?? CHAT_LIMITS.maxTokensDefault,
    jsonMode: body.json_mode ?? false,
    ...(body.model === undefined ? {} : { model: body.model }),
    ...(body.entity_id === undefined ? {} : { entityId: body.entity_id }),
    ...(body.subject === undefined ? {} : { subject: body.subject }),
    ...(body.grade === undefined ? {} : { grade: body.grade }),
    ...(body.metadata === undefined ? {} : { metadataJson: JSON.stringify(body.metadata) }),
  };
  return { request, ignoredFields: ignoredIn(body, body.messages, BODY_FIELDS) };
}
