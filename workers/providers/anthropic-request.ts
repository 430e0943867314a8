import type { ChatMessage, ChatRequest, Role } from '../../shared/contracts/chat-request.ts';
import type { Fields } from '../../shared/contracts/events.ts';
import { isRecord, wellFormedJson } from '../../shared/contracts/parse.ts';
import { derivedId } from '../../shared/lifecycle/ids.ts';
import { BETWEEN_JOINED, joinRoles, textOfRow, offersTools } from './provider.ts';
import type { Row, ProviderCall } from './provider.ts';

type Passed = ChatRequest['passed'];
type Turn = { role: Role; content: string | Fields[] };

/** The API has no `response_format` for a JSON object without a schema. */
const JSON_INSTRUCTION =
  'Answer with one JSON object and nothing else: no text before or after it, and no code fence around it.';

/** These stand in for the user's words, because the API requires a conversation to begin and end with the user. */
const OPENING = '(The conversation begins.)';
const CONTINUATION = 'Continue.';

const TEMPERATURE_MAX = 1;

const record = (value: unknown): Fields => (isRecord(value) ? value : {});
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

const DATA_URL = /^data:([^;,]*)[^,]*,/;

function sourceOf(url: string): Fields {
  const [head, type] = DATA_URL.exec(url) ?? [];
  if (head === undefined) return { type: 'url', url };
  // Callers write `image/jpg`, too.
  const mediaType = type?.toLowerCase().replace(/^image\/jpg$/, 'image/jpeg');
  const data = url.slice(head.length);
  if (mediaType?.startsWith('text/') !== true) return { type: 'base64', media_type: mediaType, data };
  // The API takes text of this one type, and only as it is.
  return { type: 'text', media_type: 'text/plain', data: Buffer.from(data, 'base64').toString() };
}

/** A text, image or file of OpenAI's messages; undefined: it says nothing, which the API refuses. */
function toBlock(part: unknown): Fields | undefined {
  const { text, image_url: image, file } = record(part);
  if (isRecord(image)) return { type: 'image', source: sourceOf(textIn(image['url'])) };
  if (!isRecord(file)) return textIn(text).trim() === '' ? undefined : { type: 'text', text };
  const { file_data: data, filename } = file;
  const source = sourceOf(textIn(data));
  return { type: 'document', source, ...(typeof filename === 'string' ? { title: filename } : {}) };
}

function blocksOfContent(content: unknown): Fields[] {
  const parts = typeof content === 'string' ? [{ text: content }] : list(content);
  return parts.map(toBlock).filter((block) => block !== undefined);
}

function inputOf(json: unknown): unknown {
  try {
    const input: unknown = JSON.parse(textIn(json));
    return isRecord(input) ? input : {};
  } catch {
    // The model's own mistake, or its caller's; the API takes objects only.
    return {};
  }
}

/** Other providers' ids, such as `functions.time:0`, become ones that the API takes. */
const idOf = (id: unknown) => (/^[\w-]{1,64}$/.test(textIn(id)) ? id : derivedId('call', textIn(id)));

function blocksOf({ content: text, sent = { content: text } }: ChatMessage): Fields[] {
  const { role, content, tool_calls: calls, tool_call_id: id } = sent;
  const blocks = blocksOfContent(content);
  if (role === 'tool')
    return [{ type: 'tool_result', tool_use_id: idOf(id), ...(blocks.length > 0 ? { content: blocks } : {}) }];
  const uses = list(calls).map((call) => {
    const { name, arguments: json } = record(record(call)['function']);
    return { type: 'tool_use', id: idOf(record(call)['id']), name, input: inputOf(json) };
  });
  return [...blocks, ...uses];
}

function contentOf(row: Row): string | Fields[] {
  return row.messages.some(({ sent }) => sent !== undefined) ? row.messages.flatMap(blocksOf) : textOfRow(row);
}

/** OpenAI's `tool_choice` as that of the API; undefined: the API's default. */
function choiceOf({ tool_choice: choice, parallel_tool_calls: parallel }: Fields): Fields | undefined {
  const { function: called, allowed_tools: allowed } = record(choice);
  const word = isRecord(allowed) ? allowed['mode'] : choice;
  const { name } = record(called);
  const one = parallel === false ? { disable_parallel_tool_use: true } : {};
  if (name !== undefined) return { type: 'tool', name, ...one };
  if (word === 'none') return { type: 'none' };
  if (word === 'required') return { type: 'any', ...one };
  return parallel === false ? { type: 'auto', ...one } : undefined;
}

/** The tools that the caller allows of those it offers, by name; undefined: all. */
function allowedOf({ tool_choice: choice }: Fields): unknown[] | undefined {
  const { allowed_tools: allowed } = record(choice);
  if (!isRecord(allowed)) return undefined;
  return list(allowed['tools']).map((tool) => record(record(tool)['function'])['name']);
}

const NO_PARAMETERS = { type: 'object', properties: {} };

/** OpenAI's tools as those of the API, which wants them for calls in the conversation, too. */
function toolFields(passed: Passed, messages: readonly ChatMessage[]): Fields {
  if (!offersTools(passed)) {
    if (!messages.some(({ sent }) => sent !== undefined)) return {};
    const uses = messages.flatMap((message) => (message.sent === undefined ? [] : blocksOf(message)));
    const names = new Set(uses.flatMap(({ type, name }) => (type === 'tool_use' ? [name] : [])));
    const tools = [...names].map((name) => ({ name, input_schema: NO_PARAMETERS }));
    return tools.length === 0 ? {} : { tools, tool_choice: { type: 'none' } };
  }
  const allowed = allowedOf(passed ?? {});
  const { tools: given, functions } = passed ?? {};
  const offered = [...list(given).map((tool) => record(tool)['function']), ...list(functions)].map(record);
  const tools = offered.flatMap(({ name, description, parameters }) => {
    const described = typeof description === 'string' ? { description } : {};
    const schema = { ...NO_PARAMETERS, ...record(parameters) };
    return allowed?.includes(name) === false ? [] : [{ name, ...described, input_schema: schema }];
  });
  const choice = choiceOf(passed ?? {});
  return { tools, ...(choice === undefined ? {} : { tool_choice: choice }) };
}

function systemOf(system: Row, jsonMode: boolean): string {
  const texts = system.messages.map(({ content }) => content);
  return [...texts, ...(jsonMode ? [JSON_INSTRUCTION] : [])].join(BETWEEN_JOINED);
}

/**
 * Makes turns alternate, beginning and ending with the user: OPENING goes in front and CONTINUATION behind where the
 * user does not speak, as current models refuse to continue an answer begun for them.
 */
function turnsOf(rows: readonly Row[]): Turn[] {
  const turns: Turn[] = rows.map((row) => ({ role: row.role, content: contentOf(row) }));
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', content: OPENING });
  if (turns.at(-1)?.role === 'assistant') turns.push({ role: 'user', content: CONTINUATION });
  return turns;
}

/** The API accepts no stop sequence of nothing but white space, so one such as `"\n"` is looked for here. */
function isBlankText(stop: string): boolean {
  return stop.trim() === '';
}

function stopsOf(passed: Passed): string[] {
  return [passed?.['stop']].flat().filter((stop) => typeof stop === 'string');
}

export const blankStops = (passed: Passed) => stopsOf(passed).filter(isBlankText);

/** `seed` is not supported, and current models take only one of `temperature` and `top_p`: the temperature wins. */
function settingsOf(passed: Passed = {}): Record<string, unknown> {
  const { temperature, top_p: topP, user } = passed;
  const stops = stopsOf(passed).filter((text) => !isBlankText(text));
  return {
    ...(typeof temperature === 'number' ? { temperature: Math.min(temperature, TEMPERATURE_MAX) } : {}),
    ...(topP === undefined || temperature !== undefined ? {} : { top_p: topP }),
    ...(stops.length === 0 ? {} : { stop_sequences: stops }),
    ...(user === undefined ? {} : { metadata: { user_id: user } }),
  };
}

export function toMessagesBody(call: ProviderCall): string {
  // The API refuses text blocks of nothing but white space; joinRoles leaves these out.
  const { system: systemRow, turns } = joinRoles(call.messages);
  const system = systemOf(systemRow, call.jsonMode);
  return wellFormedJson({
    model: call.model,
    max_tokens: call.maxTokens,
    ...(system === '' ? {} : { system }),
    messages: turnsOf(turns),
    ...settingsOf(call.passed),
    ...toolFields(call.passed, call.messages),
    ...(call.stream ? { stream: true } : {}),
  });
}
