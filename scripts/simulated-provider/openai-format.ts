import { INPUT_FIELDS, parseChatRequest } from './chat-request.ts';
import type { Answer } from './plan-answer.ts';
import type { Dialect, Reply, StreamEvents } from './reply.ts';

const DONE_EVENT = 'data: [DONE]\n\n';

/** Builds the shared part of all events only once: a stream of 40 chunks encodes its head once, not 40 times. */
function createStreamEvents(
  { head: { id, createdSeconds, model }, usageShape }: Reply,
  includeUsage: boolean,
): StreamEvents {
  const head =
    `data: {"id":"${id}","object":"chat.completion.chunk","created":${createdSeconds},` +
    `"model":${JSON.stringify(model)},"system_fingerprint":"fp_simulated","choices":[`;
  // If usage was requested, OpenAI puts `usage: null` into every chunk but the last.
  const tail = includeUsage ? '],"usage":null}\n\n' : ']}\n\n';
  const going = ',"logprobs":null,"finish_reason":null}' + tail;
  const choice = (index: number, delta: string) => `${head}{"index":${index},"delta":${delta}`;
  // With the usage beside it, where a provider says it there.
  const finish = (reason: string, index: number, usage?: object) =>
    `${choice(index, '{}')},"logprobs":null,"finish_reason":${JSON.stringify(reason)}}` +
    (usage === undefined ? tail : `],"usage":${JSON.stringify(usage)}}\n\n`);
  // In Groq's field where it is the provider's own.
  const alone = (usage: object) =>
    `${head}],${usageShape === 'own' ? `"usage":null,"x_groq":{"usage":${JSON.stringify(usage)}}` : `"usage":${JSON.stringify(usage)}`}}\n\n`;
  return {
    begin: (answers) =>
      answers
        .map(
          ({ calls }, index) =>
            choice(index, `{"role":"assistant","content":${calls.length > 0 ? 'null' : '""'},"refusal":null}`) + going,
        )
        .join(''),
    delta: ({ text, other }, index) =>
      other === undefined
        ? choice(index, `{"content":${JSON.stringify(text)}}`) + going
        : choice(index, JSON.stringify(other)) + going,
    end(answers, told) {
      const usage = includeUsage ? told : undefined;
      const beside = usageShape === 'beside' || usageShape === 'doubled' ? usage : undefined;
      const ends = answers.map(({ finishReason }, index) =>
        finish(finishReason, index, index === answers.length - 1 ? beside : undefined),
      );
      return ends.join('') + (usage === undefined || usageShape === 'beside' ? '' : alone(usage)) + DONE_EVENT;
    },
  };
}

/** The body of a complete answer; without `usage`, it has no such field. */
function completionBody(
  { head: { id, createdSeconds, model }, answers, usageShape }: Reply,
  usage: object | undefined,
): string {
  return JSON.stringify({
    id,
    object: 'chat.completion',
    created: createdSeconds,
    model,
    choices: answers.map((answer, index) => ({
      index,
      message: messageOf(answer),
      logprobs: null,
      finish_reason: answer.finishReason,
    })),
    ...(usageShape === 'own' ? { x_groq: { usage } } : { usage }),
    system_fingerprint: 'fp_simulated',
  });
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

/** OpenAI's Chat Completions. */
export const COMPLETIONS: Dialect = {
  read: parseChatRequest,
  idPrefix: 'chatcmpl-',
  tellsAllKinds: true,
  usage: (usage) => usage,
  complete: completionBody,
  events: createStreamEvents,
};
