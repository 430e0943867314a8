import { RequestError } from './request-error.ts';

/** The parts of an OpenAI chat completion request that the provider uses. */
export interface ChatRequest {
  model: string;
  messages: { role: string; text: string }[];
  /** The messages exactly as they were received. */
  received: readonly unknown[];
  stream: boolean;
  includeUsage: boolean;
  maxTokens: number | null;
  stop: readonly string[];
  seed: number | null;
  temperature: number | null;
  wantsJson: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

const ROLES: ReadonlySet<unknown> = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);

/** Handwritten instead of joi, because benchmarks send thousands of requests per second. Throws RequestError. */
export function parseChatRequest(body: unknown): ChatRequest {
  if (!isObject(body)) throw new RequestError(400, 'The request body must be a JSON object.');
  const { model, messages } = body;
  if (typeof model !== 'string' || model === '') refuse('model', 'must be a non-empty string');
  if (!Array.isArray(messages) || messages.length === 0) refuse('messages', 'must be a non-empty array');
  const received: readonly unknown[] = messages;

  const temperature = readNumber(body, 'temperature', 0, 2);
  readNumber(body, 'top_p', 0, 1);
  readNumber(body, 'n', 1, 1);
  const stream = readBoolean(body, 'stream');
  const maxTokens = readWhole(body, 'max_completion_tokens', 1) ?? readWhole(body, 'max_tokens', 1);
  return {
    model,
    messages: received.map(readMessage),
    received,
    stream,
    includeUsage: readIncludeUsage(body, stream),
    maxTokens,
    stop: readStop(body['stop']),
    seed: readWhole(body, 'seed', Number.MIN_SAFE_INTEGER),
    temperature,
    wantsJson: readWantsJson(body['response_format']),
  };
}

function readMessage(message: unknown, index: number): { role: string; text: string } {
  if (!isObject(message)) return refuse(`messages[${index}]`, 'must be an object');
  const { role, content } = message;
  if (typeof role !== 'string' || !ROLES.has(role)) {
    return refuse(`messages[${index}].role`, `must be one of ${[...ROLES].join(', ')}`);
  }
  if (typeof content === 'string') return { role, text: content };
  if (content === null && role === 'assistant') return { role, text: '' };
  if (!Array.isArray(content))
    return refuse(`messages[${index}].content`, 'must be a string or an array of text parts');
  return { role, text: content.map((part: unknown) => readPart(part, `messages[${index}].content`)).join('') };
}

function readPart(part: unknown, param: string): string {
  if (!isObject(part) || part['type'] !== 'text' || typeof part['text'] !== 'string') {
    return refuse(param, 'must have parts of type text only');
  }
  return part['text'];
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

function readWantsJson(format: unknown): boolean {
  if (isAbsent(format)) return false;
  const type = isObject(format) ? format['type'] : undefined;
  if (type === 'text') return false;
  if (type === 'json_object' || type === 'json_schema') return true;
  return refuse('response_format', 'must have the type text, json_object or json_schema');
}

function readBoolean(fields: Fields, name: string): boolean {
  const value = fields[name];
  if (isAbsent(value)) return false;
  return typeof value === 'boolean' ? value : refuse(name, 'must be a boolean');
}

function readWhole(fields: Fields, name: string, min: number): number | null {
  const value = fields[name];
  if (isAbsent(value)) return null;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min) return value;
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

function refuse(param: string, rule: string): never {
  throw new RequestError(400, `${param} ${rule}.`, param);
}
