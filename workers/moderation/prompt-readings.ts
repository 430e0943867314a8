import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import { joinRoles, textOfRow } from '../providers/join-roles.ts';
import type { Row } from '../providers/join-roles.ts';
import { openJsonReader } from './text-units.ts';

/** A prompt as moderation gets it. */
export interface PromptToRead {
  /** Undefined if there is neither subject nor grade. */
  instruction: ChatMessage | undefined;
  /** The values in it. */
  values: readonly string[];
  /** The messages as the caller sent them. */
  messages: readonly ChatMessage[];
  /** Already moderated with the requests that brought it. */
  history: readonly ChatMessage[];
  /** The messages that follow the history. */
  submitted: readonly ChatMessage[];
  /** Texts that a model reads besides the messages. */
  beside: readonly string[];
}

const FORMAT_CHARACTER = /\p{Cf}/u;
const FORMAT_CHARACTERS = /\p{Cf}+/gu;
/** Invisible doubles of all printable ASCII characters, which many models can read. */
const TAG_CHARACTERS = /[\u{e0020}-\u{e007e}]/gu;
const TAGS_FROM = 0xe0000;

function revealTags(text: string): string {
  return text.replaceAll(TAG_CHARACTERS, (tag) => String.fromCodePoint((tag.codePointAt(0) ?? TAGS_FROM) - TAGS_FROM));
}

/** A text and, if it has format characters, also the text without them and with its tag characters made visible. */
function eachReading(text: string): string[] {
  if (!FORMAT_CHARACTER.test(text)) return [text];
  return [text, text.replaceAll(FORMAT_CHARACTERS, ''), revealTags(text).replaceAll(FORMAT_CHARACTERS, '')];
}

/** A text with JSON in it, and what that says without its escapes. */
function eachReadingOfJson(text: string): string[] {
  return (text.includes('\\') ? [text, openJsonReader()(text)] : [text]).flatMap(eachReading);
}

/** The values of subject and grade, as they appear in the instruction and side by side. */
export function readingsOfContext({ instruction, values }: Pick<PromptToRead, 'instruction' | 'values'>): string[] {
  if (instruction === undefined) return [];
  const beside = values.length > 1 ? [values.join(' ')] : [];
  return [...new Set([instruction.content, ...beside].flatMap(eachReading))];
}

/**
 * Rows in which stored messages have neighbours of the same role. Each was moderated with its own request, but perhaps
 * not side by side: requests of one entity may run at once, and a turn between two others may be deleted.
 */
function storedNeighbours({ history, submitted }: PromptToRead): Row[] {
  if (history.length === 0) return [];
  const stored = new Set(history);
  return joinRoles([...history, ...submitted]).turns.filter(
    ({ messages }) => messages.length > 1 && messages.some((message) => stored.has(message)),
  );
}

/** Inputs that a model reads one by one. */
export function readingsOfInputs(messages: readonly ChatMessage[]): string[] {
  return [...new Set(messages.flatMap(({ content }) => eachReading(content)))];
}

/**
 * Everything that a model reads of a request, as texts: consecutive messages of one role are one text, separated by an
 * empty line as in an adapter. The moderator reads each text as it is and with line breaks as spaces, so a joined
 * message need not be read separately as well.
 */
export function readingsOf(prompt: PromptToRead): string[] {
  const { system, turns } = joinRoles(prompt.messages);
  const rows = [...(system.messages.length === 0 ? [] : [system]), ...turns, ...storedNeighbours(prompt)];
  const texts = rows.flatMap((row) => {
    const hasMore = row.messages.some(({ sent }) => sent !== undefined);
    return hasMore ? eachReadingOfJson(textOfRow(row)) : eachReading(textOfRow(row));
  });
  return [...new Set([...readingsOfContext(prompt), ...texts, ...prompt.beside.flatMap(eachReadingOfJson)])];
}
