import { INPUT_FIELDS } from './chat-request.ts';
import type { Answer, Delta } from './plan-answer.ts';
import { splitTokens } from './tokens.ts';

/** What every part of one reply repeats. */
export interface ReplyHead {
  id: string;
  createdSeconds: number;
  model: string;
}

/** The events of one stream, each a complete SSE event. */
export interface StreamEvents {
  role(answer: Answer, index: number): string;
  delta(delta: Delta, index: number): string;
  /** With the usage beside it, where a provider says it there. */
  finish(reason: string, index: number, usage?: object): string;
  /** A chunk of the usage alone; in Groq's field where it is the provider's `own`. */
  usage(usage: object, isOwn: boolean): string;
}

export const DONE_EVENT = 'data: [DONE]\n\n';

/** Builds the shared part of all events only once: a stream of 40 chunks encodes its head once, not 40 times. */
export function createStreamEvents(
  { id, createdSeconds, model }: ReplyHead,
  includeUsage: boolean,
  topLogprobs: number | null,
): StreamEvents {
  const head =
    `data: {"id":"${id}","object":"chat.completion.chunk","created":${createdSeconds},` +
    `"model":${JSON.stringify(model)},"system_fingerprint":"fp_simulated","choices":[`;
  // If usage was requested, OpenAI puts `usage: null` into every chunk but the last.
  const tail = includeUsage ? '],"usage":null}\n\n' : ']}\n\n';
  const going = ',"logprobs":null,"finish_reason":null}' + tail;
  const choice = (index: number, delta: string) => `${head}{"index":${index},"delta":${delta}`;
  return {
    role: ({ calls }, index) =>
      choice(index, `{"role":"assistant","content":${calls.length > 0 ? 'null' : '""'},"refusal":null}`) + going,
    delta: ({ text, other }, index) =>
      other === undefined
        ? choice(index, `{"content":${JSON.stringify(text)}}`) +
          (topLogprobs === null ? going : going.replace('null', JSON.stringify(logprobsOf(text, topLogprobs))))
        : choice(index, JSON.stringify(other)) + going,
    finish: (reason, index, usage) =>
      `${choice(index, '{}')},"logprobs":null,"finish_reason":${JSON.stringify(reason)}}` +
      (usage === undefined ? tail : `],"usage":${JSON.stringify(usage)}}\n\n`),
    usage: (usage, isOwn) =>
      `${head}],${isOwn ? `"usage":null,"x_groq":{"usage":${JSON.stringify(usage)}}` : `"usage":${JSON.stringify(usage)}`}}\n\n`,
  };
}

/** The body of a complete answer; without `usage`, it has no such field. */
export function completionBody(
  {
    head: { id, createdSeconds, model },
    answers,
    topLogprobs,
  }: { head: ReplyHead; answers: readonly Answer[]; topLogprobs: number | null },
  usage: object | undefined,
  isOwn: boolean,
): string {
  return JSON.stringify({
    id,
    object: 'chat.completion',
    created: createdSeconds,
    model,
    choices: answers.map((answer, index) => ({
      index,
      message: messageOf(answer),
      logprobs: topLogprobs === null || answer.text === '' ? null : logprobsOf(answer.text, topLogprobs),
      finish_reason: answer.finishReason,
    })),
    ...(isOwn ? { x_groq: { usage } } : { usage }),
    system_fingerprint: 'fp_simulated',
  });
}

/** Each token is the likelier the shorter it is; the others at its place are its letters in upper case, and fewer of them. */
function logprobsOf(text: string, top: number): object {
  const likely = (token: string, logprob: number) => ({ token, logprob, bytes: [...Buffer.from(token)] });
  const content = splitTokens(text).map((token) => {
    const others = Array.from({ length: top }, (_, index) => {
      const other = index === 0 ? token : token.toUpperCase().slice(0, -index);
      return likely(other, -token.length / 10 - index);
    });
    return { ...likely(token, -token.length / 10), top_logprobs: others };
  });
  return { content, refusal: null };
}

function messageOf({ text, calls, reasoning, refusal }: Answer): object {
  return {
    role: 'assistant',
    content: text === '' && (calls.length > 0 || refusal !== '') ? null : text,
    refusal: refusal === '' ? null : refusal,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map(({ id, kind, name, input }) => ({
            id,
            type: kind,
            [kind]: { name, [INPUT_FIELDS[kind]]: input },
          })),
        }),
  };
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
