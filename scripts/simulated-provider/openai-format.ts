import type { Answer } from './plan-answer.ts';

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

/** What every part of one reply repeats. */
export interface ReplyHead {
  id: string;
  createdSeconds: number;
  model: string;
}

/** The events of one stream, each a complete SSE event. */
export interface StreamEvents {
  role: string;
  text(content: string): string;
  finish(reason: string): string;
  usage(usage: Usage): string;
}

export const DONE_EVENT = 'data: [DONE]\n\n';

export function usageOf(promptTokens: number, completionTokens: number): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

/** Builds the shared part of all events only once: a stream of 40 chunks encodes its head once, not 40 times. */
export function createStreamEvents({ id, createdSeconds, model }: ReplyHead, includeUsage: boolean): StreamEvents {
  const head =
    `data: {"id":"${id}","object":"chat.completion.chunk","created":${createdSeconds},` +
    `"model":${JSON.stringify(model)},"system_fingerprint":"fp_simulated","choices":[`;
  const choice = '{"index":0,"delta":';
  // If usage was requested, OpenAI puts `usage: null` into every chunk but the last.
  const tail = includeUsage ? '],"usage":null}\n\n' : ']}\n\n';
  const going = ',"logprobs":null,"finish_reason":null}' + tail;
  return {
    role: `${head}${choice}{"role":"assistant","content":"","refusal":null}${going}`,
    text: (content) => `${head}${choice}{"content":${JSON.stringify(content)}}${going}`,
    finish: (reason) => `${head}${choice}{},"logprobs":null,"finish_reason":${JSON.stringify(reason)}}${tail}`,
    usage: (usage) => `${head}],"usage":${JSON.stringify(usage)}}\n\n`,
  };
}

/** The body of a complete answer; without `usage`, it has no such field. */
export function completionBody(
  { id, createdSeconds, model }: ReplyHead,
  answer: Answer,
  usage: Usage | undefined,
): string {
  const message = { role: 'assistant', content: answer.text, refusal: null };
  return JSON.stringify({
    id,
    object: 'chat.completion',
    created: createdSeconds,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: answer.finishReason }],
    usage,
    system_fingerprint: 'fp_simulated',
  });
}

export function errorBody(status: number, message: string, param: string | null): object {
  return {
    error: { message, type: ERROR_TYPES[status] ?? defaultType(status), param, code: ERROR_CODES[status] ?? null },
  };
}

function defaultType(status: number): string {
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}

const ERROR_TYPES: Readonly<Record<number, string>> = { 402: 'insufficient_quota', 429: 'rate_limit_error' };
const ERROR_CODES: Readonly<Record<number, string>> = {
  401: 'invalid_api_key',
  402: 'insufficient_quota',
  429: 'rate_limit_exceeded',
};
