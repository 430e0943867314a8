import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import { joinRoles, textOfRow } from '../providers/join-roles.ts';
import type { Row } from '../providers/join-roles.ts';

/** A prompt as moderation meets it. */
export interface PromptToRead {
  /** Absent where the request has neither subject nor grade. */
  instruction: ChatMessage | undefined;
  /** The values in it. */
  values: readonly string[];
  /** As the caller sent them. */
  messages: readonly ChatMessage[];
  /** What was read with the requests that brought it. */
  history: readonly ChatMessage[];
  /** What follows the history. */
  submitted: readonly ChatMessage[];
}

const FORMAT_CHARACTER = /\p{Cf}/u;
const FORMAT_CHARACTERS = /\p{Cf}+/gu;
/** Every ASCII character has a double among them that nobody sees and many models read. */
const TAG_CHARACTERS = /[\u{e0020}-\u{e007e}]/gu;
const TAGS_FROM = 0xe0000;

function revealTags(text: string): string {
  return text.replaceAll(TAG_CHARACTERS, (tag) => String.fromCodePoint((tag.codePointAt(0) ?? TAGS_FROM) - TAGS_FROM));
}

/** A text, and where there are format characters in it what it says without them, and in them. */
function eachReading(text: string): string[] {
  if (!FORMAT_CHARACTER.test(text)) return [text];
  return [text, text.replaceAll(FORMAT_CHARACTERS, ''), revealTags(text).replaceAll(FORMAT_CHARACTERS, '')];
}

/** The values of subject and grade, as the instruction has them and side by side. */
export function readingsOfContext({ instruction, values }: Pick<PromptToRead, 'instruction' | 'values'>): string[] {
  if (instruction === undefined) return [];
  const beside = values.length > 1 ? [values.join(' ')] : [];
  return [...new Set([instruction.content, ...beside].flatMap(eachReading))];
}

/**
 * Where stored messages have neighbours of their role. Each was read with its own request; side by side they may not have
 * been, as requests of one entity may run at once and a turn may be taken out between two others.
 */
function storedNeighbours({ history, submitted }: PromptToRead): Row[] {
  if (history.length === 0) return [];
  const stored = new Set(history);
  return joinRoles([...history, ...submitted]).turns.filter(
    ({ messages }) => messages.length > 1 && messages.some((message) => stored.has(message)),
  );
}

/**
 * All that a model reads of a request, as texts: neighbours of one role are one text, parted by an empty line as an
 * adapter parts them. The moderator reads each as it is and with line breaks as spaces, so a message that is joined need
 * not be read for itself as well.
 */
export function readingsOf(prompt: PromptToRead): string[] {
  const { system, turns } = joinRoles(prompt.messages);
  const rows = [...(system.messages.length === 0 ? [] : [system]), ...turns, ...storedNeighbours(prompt)];
  const texts = rows.map(textOfRow).flatMap(eachReading);
  return [...new Set([...readingsOfContext(prompt), ...texts])];
}
