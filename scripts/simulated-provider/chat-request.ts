/** A call of a tool. A custom tool takes any text instead of an object. */
export interface ToolCall {
  id: string;
  kind: 'function' | 'custom';
  name: string;
  input: string;
}

const MEDIA = { image_url: 'image', input_audio: 'audio', file: 'file' } as const;
export type Medium = (typeof MEDIA)[keyof typeof MEDIA];

export interface Message {
  role: string;
  text: string;
  calls?: readonly ToolCall[];
  /** The call whose result this is. */
  callId?: string;
  /** The parts that are no text, in their order. */
  media?: readonly Medium[];
}

interface Tool {
  kind: ToolCall['kind'];
  name: string;
  /** The schema of a function's arguments. */
  parameters: Fields;
}

/** The parts of an OpenAI chat completion request that the provider uses. */
export interface ChatRequest {
  model: string;
  messages: Message[];
  /** The messages exactly as they were received. */
  received: readonly unknown[];
  stream: boolean;
  includeUsage: boolean;
  maxTokens: number | null;
  stop: readonly string[];
  seed: number | null;
  temperature: number | null;
  wantsJson: boolean;
  /** The schema of `response_format`. */
  schema?: unknown;
  tools: readonly Tool[];
  /** A tool may, must not or must be called, or is named. */
  toolChoice: 'auto' | 'none' | 'required' | { name: string };
  /** Several calls may come in one answer. */
  parallel: boolean;
  n: number;
}

type Fields = Readonly<Record<string, unknown>>;

/** The parts of a call beside its name. */
export const INPUT_FIELDS = { function: 'arguments', custom: 'input' } as const;
const CHOICES_MAX = 8;
const ROLES: ReadonlySet<unknown> = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);

/** Handwritten instead of joi, because benchmarks send thousands of requests per second. Throws RequestError. */
export function parseChatRequest(given: unknown): ChatRequest {
  const { model, body } = readModel(given);
  const { messages } = body;
  if (!Array.isArray(messages) || messages.length === 0) refuse('messages', 'must be a non-empty array');
  const received: readonly unknown[] = messages;
  const read = received.map(readMessage);
  assertCallsAnswered(read);
  const tools = readTools(body['tools']);
  const temperature = readNumber(body, 'temperature', 0, 2);
  readNumber(body, 'top_p', 0, 1);
  const stream = readBoolean(body, 'stream');
  const maxTokens = readWhole(body, 'max_completion_tokens', 1) ?? readWhole(body, 'max_tokens', 1);
  return {
    model,
    messages: read,
    received,
    stream,
    includeUsage: readIncludeUsage(body, stream),
    maxTokens,
    stop: readStop(body['stop']),
    seed: readWhole(body, 'seed', -(2 ** 63)),
    temperature,
    ...readFormat(body['response_format']),
    tools,
    toolChoice: readToolChoice(body['tool_choice'], tools),
    parallel: body['parallel_tool_calls'] !== false,
    n: readNumber(body, 'n', 1, CHOICES_MAX) ?? 1,
  };
}

/** The fields of every request. */
export function readModel(body: unknown): { model: string; body: Fields } {
  if (!isObject(body)) throw new RequestError(400, 'The request body must be a JSON object.');
  const { model } = body;
  if (typeof model !== 'string' || model === '') refuse('model', 'must be a non-empty string');
  return { model, body };
}

function readMessage(message: unknown, index: number): Message {
  const param = `messages[${index}]`;
  if (!isObject(message)) return refuse(param, 'must be an object');
  const { role, content, tool_calls: calls, tool_call_id: callId } = message;
  if (typeof role !== 'string' || !ROLES.has(role)) {
    return refuse(`${param}.role`, `must be one of ${[...ROLES].join(', ')}`);
  }
  const said = { role, ...readContent(content, role, `${param}.content`) };
  if (role === 'tool') {
    if (typeof callId !== 'string') refuse(`${param}.tool_call_id`, 'must be a string');
    return { ...said, callId };
  }
  return isAbsent(calls) ? said : { ...said, calls: readCalls(calls, `${param}.tool_calls`) };
}

function readContent(content: unknown, role: string, param: string): Pick<Message, 'text' | 'media'> {
  if (typeof content === 'string') return { text: content };
  if (isAbsent(content) && role === 'assistant') return { text: '' };
  if (!Array.isArray(content)) return refuse(param, 'must be a string or an array of parts');
  const parts = content.map((part: unknown) => readPart(part, param));
  const media = parts.flatMap(({ medium }) => medium ?? []);
  return { text: parts.map(({ text }) => text).join(''), ...(media.length === 0 ? {} : { media }) };
}

function readPart(part: unknown, param: string): { text: string; medium?: Medium } {
  const { type, ...held } = isObject(part) ? part : {};
  if ((type === 'text' || type === 'refusal') && typeof held[type] === 'string') return { text: held[type] };
  if ((type === 'image_url' || type === 'input_audio' || type === 'file') && isObject(held[type]))
    return { text: '', medium: MEDIA[type] };
  return refuse(param, `must have parts of type text, refusal, ${Object.keys(MEDIA).join(', ')}, each with its field`);
}

function readCalls(calls: unknown, param: string): ToolCall[] {
  if (!Array.isArray(calls) || calls.length === 0) return refuse(param, 'must be a non-empty array');
  return calls.map((call: unknown, index) => {
    const { kind, fields } = readKind(call);
    const id = isObject(call) ? call['id'] : undefined;
    const { name, [INPUT_FIELDS[kind]]: input } = fields;
    if (typeof id === 'string' && typeof name === 'string' && typeof input === 'string')
      return { id, kind, name, input };
    return refuse(`${param}[${index}]`, 'must have an id, and a function with name and arguments');
  });
}

/** Tools, calls and choices have their fields in one that is named like their type. */
function readKind(given: unknown): { kind: ToolCall['kind']; fields: Fields } {
  const held = isObject(given) ? given : {};
  const kind = held['type'] === 'custom' ? 'custom' : 'function';
  const fields = held[kind];
  return { kind, fields: isObject(fields) ? fields : {} };
}

/** OpenAI's rule: the results of an assistant's calls, all of them and no others, follow its message. */
function assertCallsAnswered(messages: readonly Message[]): void {
  let open = new Set<string>();
  for (const [index, { callId, calls }] of messages.entries()) {
    if (callId !== undefined) {
      if (!open.delete(callId)) refuse(`messages[${index}].tool_call_id`, 'must name a call of the assistant before');
      continue;
    }
    if (open.size > 0) break;
    open = new Set(calls?.map(({ id }) => id));
  }
  if (open.size > 0) refuse('messages', `must have the results of the calls ${[...open].join(', ')} behind them`);
}

function readTools(tools: unknown): Tool[] {
  if (isAbsent(tools)) return [];
  if (!Array.isArray(tools)) return refuse('tools', 'must be an array');
  return tools.map((tool: unknown, index) => {
    const { kind, fields } = readKind(tool);
    const { name, parameters } = fields;
    if (typeof name !== 'string') return refuse(`tools[${index}].${kind}.name`, 'must be a string');
    return { kind, name, parameters: isObject(parameters) ? parameters : {} };
  });
}

function readToolChoice(choice: unknown, tools: readonly Tool[]): ChatRequest['toolChoice'] {
  if (isAbsent(choice) || choice === 'auto') return 'auto';
  if (tools.length === 0) return refuse('tool_choice', 'is only allowed with tools');
  if (choice === 'none' || choice === 'required') return choice;
  const { fields } = readKind(choice);
  const tool = tools.find(({ name }) => name === fields['name']);
  return tool ?? refuse('tool_choice', 'must be none, auto, required or name one of the tools');
}

function readIncludeUsage(body: Fields, stream: boolean): boolean {
  const options = body['stream_options'];
  if (isAbsent(options)) return false;
  if (!stream) return refuse('stream_options', 'is only allowed when stream is true');
  if (!isObject(options)) return refuse('stream_options', 'must be an object');
  return readBoolean(options, 'include_usage');
}

function readStop(stop: unknown): readonly string[] {
  if (isAbsent(stop)) return [];
  const list: unknown[] = Array.isArray(stop) ? stop : [stop];
  const texts = list.filter((entry) => typeof entry === 'string' && entry !== '').map(String);
  if (texts.length < list.length || list.length > 4) return refuse('stop', 'must be a string or up to 4 strings');
  return texts;
}

function readFormat(format: unknown): Pick<ChatRequest, 'wantsJson' | 'schema'> {
  if (isAbsent(format)) return { wantsJson: false };
  const { type, json_schema: named } = isObject(format) ? format : {};
  if (type === 'text') return { wantsJson: false };
  if (type === 'json_object') return { wantsJson: true };
  if (type !== 'json_schema') return refuse('response_format', 'must have the type text, json_object or json_schema');
  if (!isObject(named)) return refuse('response_format.json_schema', 'must be an object');
  return { wantsJson: true, schema: named['schema'] ?? {} };
}

function readBoolean(fields: Fields, name: string): boolean {
  const value = fields[name];
  if (isAbsent(value)) return false;
  return typeof value === 'boolean' ? value : refuse(name, 'must be a boolean');
}

export function readWhole(fields: Fields, name: string, min: number): number | null {
  const value = fields[name];
  if (isAbsent(value)) return null;
  if (typeof value === 'number' && Number.isInteger(value) && value >= min) return value;
  return refuse(name, `must be a whole number${min === 1 ? ' of at least 1' : ''}`);
}

function readNumber(fields: Fields, name: string, min: number, max: number): number | null {
  const value = fields[name];
  if (isAbsent(value)) return null;
  if (typeof value === 'number' && value >= min && value <= max) return value;
  return refuse(name, `must be a number from ${min} to ${max}`);
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function refuse(param: string, rule: string): never {
  throw new RequestError(400, `${param} ${rule}.`, param);
}

/** A request that the provider refuses; the caller gets `message` in an error object of OpenAI's shape. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly status: number;
  /** The wrong field (`messages[2].content`), if there is one. */
  readonly param: string | null;

  constructor(status: number, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.param = param;
  }
}
