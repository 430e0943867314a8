export interface Message {
  role: string;
  content: string;
}

export interface Conversation {
  /** From the file, or the number of the line. */
  id: string;
  /** The messages of each request, in order. */
  turns: Message[][];
}

/**
 * Reads one conversation per line: `{"turns": ["…", "…"]}` is sent turn by turn, `{"messages": [{role, content}]}` as
 * one request. `question_id` or `id` names it. Throws an error of one sentence with the line's number.
 */
export function parseConversations(text: string): Conversation[] {
  const conversations = text
    .split('\n')
    .flatMap((line, index) => (line.trim() === '' ? [] : [parseLine(line, index + 1)]));
  if (conversations.length === 0) throw new Error('The file holds no conversation.');
  return conversations;
}

function parseLine(line: string, number: number): Conversation {
  const refuse = (what: string) => new Error(`Line ${number} ${what}.`);
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new Error(`Line ${number} is not JSON.`, { cause });
  }
  if (!isObject(value)) throw refuse('must be a JSON object');
  const { question_id: questionId, id = questionId ?? number, turns, messages } = value;
  if (typeof id !== 'string' && typeof id !== 'number') throw refuse('must have a text or a number as its id');
  if (turns !== undefined && messages !== undefined) throw refuse('must have either "turns" or "messages"');
  if (isListOf(turns, isText)) {
    return { id: String(id), turns: turns.map((content) => [{ role: 'user', content }]) };
  }
  if (isListOf(messages, isMessage)) return { id: String(id), turns: [messages] };
  throw refuse(
    'must have "turns", a list of texts that are not empty, or "messages", a list of objects with "role" and "content"',
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isListOf<T>(value: unknown, isItem: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.length > 0 && value.every(isItem);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isMessage(value: unknown): value is Message {
  return isObject(value) && isText(value['role']) && isText(value['content']);
}
