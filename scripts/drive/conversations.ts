import Joi from 'joi';

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

interface Line {
  id?: string | number;
  question_id?: string | number;
  turns?: string[];
  messages?: Message[];
}

const id = Joi.alternatives(Joi.string(), Joi.number());
const message = Joi.object({ role: Joi.string().required(), content: Joi.string().required() }).unknown();
const lineSchema = Joi.object<Line, true>({
  id,
  question_id: id,
  turns: Joi.array().items(Joi.string()).min(1),
  messages: Joi.array().items(message).min(1),
})
  .xor('turns', 'messages')
  .unknown()
  .label('the line');

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
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch (cause) {
    throw new Error(`Line ${number} is not JSON.`, { cause });
  }
  const checked = lineSchema.required().validate(parsed, { convert: false });
  if (checked.error !== undefined) throw new Error(`Line ${number}: ${checked.error.message}.`);
  const { value } = checked;
  const turns = value.turns?.map((content) => [{ role: 'user', content }]);
  return { id: String(value.id ?? value.question_id ?? number), turns: turns ?? [value.messages ?? []] };
}
