import type { paths } from '../../public-api.d.ts';

type BodyOf<Path extends '/chat/stream' | '/chat/completions'> =
  paths[Path]['post']['requestBody']['content']['application/json'];
type Message = BodyOf<'/chat/completions'>['messages'][number];

/** A tool call of an answer, as far as it has come. */
export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

/** The contents of the playground's fields. */
export interface Draft {
  model: 'mobius' | 'oloid';
  prompt: string;
  system: string;
  entity: string;
  subject: string;
  grade: string;
  maxTokens: string;
  format: 'text' | 'json_object' | 'json_schema';
  schema: string;
  tools: string;
  toolChoice: 'auto' | 'required' | 'none';
  /** Calls of tools, and their results, follow the prompt. */
  history: readonly Message[];
}

/** Tools and schemas are read by the endpoint of OpenAI's clients alone; what the service adds has the other one. */
export type Call =
  | { path: '/chat/stream'; body: BodyOf<'/chat/stream'> }
  | { path: '/chat/completions'; body: BodyOf<'/chat/completions'> };

const indented = (value: unknown) => JSON.stringify(value, undefined, 2);

export const TOOLS_EXAMPLE = indented([
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'The weather in a city.',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
]);

export const SCHEMA_EXAMPLE = indented({
  type: 'object',
  properties: { answer: { type: 'string' }, confidence: { type: 'number', minimum: 0, maximum: 1 } },
  required: ['answer', 'confidence'],
  additionalProperties: false,
});

type Json = Readonly<Record<string, unknown>>;

/** Undefined: the text is no JSON of this kind. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Says in words for people why the call cannot be sent yet. */
export function faultsIn({ tools, format, schema }: Draft): { tools?: string; schema?: string } {
  const areTools = tools.trim() === '' || Array.isArray(parse(tools));
  return {
    ...(areTools ? {} : { tools: 'This is no JSON list of tools.' }),
    ...(format !== 'json_schema' || isJson(parse(schema)) ? {} : { schema: 'This is no JSON object.' }),
  };
}

export function toCall(draft: Draft): Call {
  const { model, prompt, system, entity, subject, grade, maxTokens, format, history, toolChoice } = draft;
  const tools = parse(draft.tools);
  const common = {
    model,
    ...(maxTokens === '' ? {} : { max_tokens: Number(maxTokens) }),
    ...(entity === '' ? {} : { entity_id: entity }),
    ...(subject === '' ? {} : { subject }),
    ...(grade === '' ? {} : { grade }),
  };
  const messages = [
    ...(system === '' ? [] : [{ role: 'system' as const, content: system }]),
    { role: 'user' as const, content: prompt },
  ];
  if (!Array.isArray(tools) && format !== 'json_schema')
    return {
      path: '/chat/stream',
      body: { ...common, messages, ...(format === 'json_object' ? { json_mode: true } : {}) },
    };
  const schema = parse(draft.schema);
  return {
    path: '/chat/completions',
    body: {
      ...common,
      messages: [...messages, ...history],
      stream: true,
      // The service says what is wrong with a tool.
      ...(Array.isArray(tools) ? { tools: tools as NonNullable<BodyOf<'/chat/completions'>['tools']> } : {}),
      // A model that must call a tool again and again never answers.
      ...(Array.isArray(tools) && toolChoice !== 'auto' && history.length === 0 ? { tool_choice: toolChoice } : {}),
      ...(format === 'json_object' ? { response_format: { type: format } } : {}),
      ...(format === 'json_schema' && isJson(schema)
        ? { response_format: { type: format, json_schema: { name: 'answer', strict: true, schema: { ...schema } } } }
        : {}),
    },
  };
}

/** The messages that follow when the results of an answer's calls are sent back. */
export const withResults = (
  { history }: Draft,
  text: string,
  calls: readonly ToolCall[],
  results: readonly string[],
): Message[] => [
  ...history,
  {
    role: 'assistant',
    content: text === '' ? null : text,
    tool_calls: calls.map(({ id, ...called }) => ({ id, type: 'function' as const, function: called })),
  },
  ...calls.map(({ id }, at) => ({ role: 'tool' as const, tool_call_id: id, content: results[at] ?? '' })),
];
