/** A small client of the simulated provider for tests: reads streams to their end, however that comes. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

interface Choice {
  delta: { content?: string };
  message: { content: string };
  finish_reason: string | null;
}

interface Reply {
  choices: Choice[];
  usage?: Usage | null;
}

/** What a reader has of a stream, and whether the connection broke. */
interface StreamRead {
  events: string[];
  text: string;
  finishReason: string | null;
  usage: Usage | null;
  broke: boolean;
}

export interface ProviderClient {
  post(path: string, body: unknown, options?: RequestInit): Promise<Response>;
  /** `model` may carry settings, `more` are further fields of the body. */
  chat(model: string, more?: object, options?: RequestInit): Promise<Response>;
  complete(model: string, more?: object, options?: RequestInit): Promise<Reply>;
  /** Asks for usage, too. */
  stream(model: string, more?: object, options?: RequestInit): Promise<StreamRead>;
}

export const MESSAGES = [{ role: 'user', content: 'What is a river?' }];
export const PROMPT_TOKENS = 3 + 4 + 4;

export function createProviderClient(url: string): ProviderClient {
  function post(path: string, body: unknown, options: RequestInit = {}): Promise<Response> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return fetch(url + path, { method: 'POST', body: text, ...options });
  }

  function chat(model: string, more: object = {}, options: RequestInit = {}): Promise<Response> {
    return post('/v1/chat/completions', { model, messages: MESSAGES, ...more }, options);
  }

  return {
    post,
    chat,
    async complete(model, more, options) {
      const response = await chat(model, more, options);
      return JSON.parse(await response.text());
    },
    async stream(model, more, options) {
      const body = { stream: true, stream_options: { include_usage: true }, ...more };
      const { raw, broke } = await readAll(await chat(model, body, options));
      return { ...readEvents(raw), broke };
    },
  };
}

/** Unlike `response.text()` it keeps what came before the connection broke. */
export async function readAll(response: Response): Promise<{ raw: string; broke: boolean }> {
  const decoder = new TextDecoder();
  let raw = '';
  try {
    for await (const bytes of response.body ?? []) raw += decoder.decode(bytes, { stream: true });
    return { raw, broke: false };
  } catch {
    return { raw, broke: true };
  }
}

function readEvents(raw: string): Omit<StreamRead, 'broke'> {
  const read: Omit<StreamRead, 'broke'> = { events: [], text: '', finishReason: null, usage: null };
  for (const event of raw.split('\n\n').filter((text) => text !== '')) {
    const data = event.replace(/^data: /, '');
    read.events.push(data);
    if (data === '[DONE]' || !data.endsWith('}')) continue;
    const { choices, usage }: Reply = JSON.parse(data);
    read.text += choices[0]?.delta.content ?? '';
    read.finishReason ??= choices[0]?.finish_reason ?? null;
    read.usage ??= usage ?? null;
  }
  return read;
}

/** Resolves when the condition holds; the test's own time limit is the limit. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}
