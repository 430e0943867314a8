import { createHash } from 'node:crypto';
import type { ChatRequest, Message, ToolCall } from './chat-request.ts';
import { exampleOf } from './example-of-schema.ts';
import { isUsageShape } from './usage-shape.ts';
import type { UsageShape } from './usage-shape.ts';

/** `simulate-tool=get_weather{"city":"Oslo"}`, `simulate-reasoning`, `simulate-usage=cached`. */
const MARK = /simulate-(tool|reasoning|refusal|usage)(?:=([\w-]+))?/g;

/** The marks in the last message of the user, which say what an answer has beside its text. */
export interface Marks {
  /** Each a call: the name of its tool (undefined: the first one), and arguments if the mark has some. */
  calls: { name: string | undefined; given: string | undefined }[];
  reasons: boolean;
  refuses: boolean;
  usage: UsageShape | undefined;
}

type Asked = Pick<ChatRequest, 'messages' | 'tools' | 'toolChoice' | 'parallel'>;

export function readMarks(messages: readonly Message[]): Marks {
  const marks: Marks = { calls: [], reasons: false, refuses: false, usage: undefined };
  const text = messages.findLast(({ role }) => role === 'user')?.text ?? '';
  if (!text.includes('simulate-')) return marks;
  for (const { 0: mark, 1: word, 2: value, index } of text.matchAll(MARK)) {
    if (word === 'tool') marks.calls.push({ name: value, given: objectAt(text.slice(index + mark.length)) });
    else if (word === 'reasoning') marks.reasons = true;
    else if (word === 'refusal') marks.refuses = true;
    else if (isUsageShape(value)) marks.usage = value;
  }
  return marks;
}

/** The JSON object with which a text begins. */
export function objectAt(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined;
  for (let end = text.indexOf('}'); end !== -1; end = text.indexOf('}', end + 1)) {
    const object = text.slice(0, end + 1);
    try {
      JSON.parse(object);
      return object;
    } catch {
      // It goes on behind this brace.
    }
  }
  return undefined;
}

/** The messages behind the user's last one: calls of this turn and their results. */
export const turnOf = (messages: readonly Message[]) =>
  messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1);

/**
 * The calls of an answer: those that are marked, the tool that is named, or one after the other where one is required;
 * none again that this turn has made. `key` makes their ids.
 */
export function planCalls(request: Asked, marks: Marks, key: string): ToolCall[] {
  const { messages, tools, toolChoice, parallel } = request;
  if (tools.length === 0 || toolChoice === 'none') return [];
  const offered = typeof toolChoice === 'object' ? tools.filter(({ name }) => name === toolChoice.name) : tools;
  const marked = marks.calls.flatMap(({ name, given }) => {
    const tool = name === undefined ? offered[0] : offered.find((one) => one.name === name);
    return tool === undefined ? [] : [{ ...tool, given }];
  });
  const isForced = toolChoice !== 'auto' && marked.length === 0;
  const wanted = isForced ? offered.map((tool) => ({ ...tool, given: undefined })) : marked;
  const made = turnOf(messages).flatMap(({ calls }) => calls?.map(({ name }) => name) ?? []);
  const missing = wanted.filter(({ name }) => {
    const index = made.indexOf(name);
    if (index !== -1) made.splice(index, 1);
    return index === -1;
  });
  return missing
    .slice(0, parallel && !isForced ? undefined : 1)
    .map(({ kind, name, parameters, given }, index) => ({
      id: `call_${createHash('sha1').update(`${key} ${messages.length} ${index}`).digest('hex').slice(0, 24)}`,
      kind,
      name,
      input: given ?? (kind === 'custom' ? 'text' : JSON.stringify(exampleOf({ type: 'object', ...parameters }))),
    }));
}
