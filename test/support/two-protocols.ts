import { afterAll, beforeAll } from '@jest/globals';

import type { ServerResponse } from 'node:http';

import { startScriptedServer } from './scripted-server.ts';
import type { ScriptedServer } from './scripted-server.ts';
import type { TestService } from './service.ts';

/** What a scripted provider answers, in either protocol. */
export interface Said {
  prompt: number;
  completion: number;
  /** Of OpenAI's dialect: counted beside the completion. */
  reasoning?: number;
  /** A stream sends each text in an event of its own. */
  texts: readonly string[];
  /** Undefined: `stop`, in the protocol's own word. */
  finish?: 'length';
  /** A stream stops here: `cut` ends the body, `silent` keeps it open. Without it the answer is whole. */
  stops?: 'cut' | 'silent';
}

const sse = (...events: unknown[]) =>
  events.map((event) => `data: ${event === '[DONE]' ? event : JSON.stringify(event)}\n\n`).join('');

/** OpenAI's dialect. */
const completions = {
  usageOf({ prompt, completion, reasoning }: Said) {
    const counts = { prompt_tokens: prompt, completion_tokens: completion };
    if (reasoning === undefined) return counts;
    const total = prompt + completion + reasoning;
    return { ...counts, total_tokens: total, completion_tokens_details: { reasoning_tokens: reasoning } };
  },
  begin: ({ texts }: Said) => sse(...texts.map((content) => ({ choices: [{ index: 0, delta: { content } }] }))),
  end: (said: Said) =>
    sse(
      { choices: [{ index: 0, delta: {}, finish_reason: said.finish ?? 'stop' }] },
      { choices: [], usage: completions.usageOf(said) },
      '[DONE]',
    ),
  whole: (said: Said) => ({
    choices: [{ index: 0, message: { content: said.texts.join('') }, finish_reason: said.finish ?? 'stop' }],
    usage: completions.usageOf(said),
  }),
};

/** Anthropic's. */
const messages = {
  usageOf: ({ prompt, completion }: Said) => ({ input_tokens: prompt, output_tokens: completion }),
  begin: (said: Said) =>
    sse(
      { type: 'message_start', message: { usage: { ...messages.usageOf(said), output_tokens: 1 } } },
      ...said.texts.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    ),
  end: (said: Said) =>
    sse(
      {
        type: 'message_delta',
        delta: { stop_reason: said.finish === undefined ? 'end_turn' : 'max_tokens' },
        usage: messages.usageOf(said),
      },
      { type: 'message_stop' },
    ),
  whole: (said: Said) => ({
    content: said.texts.map((text) => ({ type: 'text', text })),
    stop_reason: said.finish === undefined ? 'end_turn' : 'max_tokens',
    usage: messages.usageOf(said),
  }),
};

function answer(res: ServerResponse, isMessages: boolean, body: { stream?: boolean }, said: Said): void {
  const protocol = isMessages ? messages : completions;
  if (body.stream !== true) {
    res.end(JSON.stringify(protocol.whole(said)));
    return;
  }
  res.write(protocol.begin(said));
  if (said.stops === undefined) res.write(protocol.end(said));
  if (said.stops !== 'silent') res.end();
}

/**
 * Providers that answer as a test says: `mobius` speaks OpenAI's protocol, `oloid` Anthropic's at four times the price.
 * Starts a worker of the service, which must have none. Stands at the top of a `describe`.
 */
export function useTwoProtocols(service: TestService): {
  /** The next answer, and those after it; the last one is repeated. */
  say(...said: [Said, ...Said[]]): void;
  /** The bodies of the calls since the last `say`. */
  asked(): Record<string, unknown>[];
} {
  let server: ScriptedServer;
  let script: Said[] = [];
  let before = 0;
  beforeAll(async () => {
    server = await startScriptedServer();
    server.answer((res, req) => {
      const body = JSON.parse(server.requests.at(-1)?.body ?? '') as { stream?: boolean };
      const said = script.length > 1 ? script.shift() : script[0];
      if (said !== undefined) answer(res, req.url?.endsWith('/messages') === true, body, said);
    });
    const settings = { base_url: `${server.url}/v1`, max_retries: 0 };
    await service.setProvider({ kind: 'openai', ...settings }, 'completions');
    await service.setProvider({ kind: 'anthropic', ...settings }, 'messages');
    await service.setTargets('mobius', [{ provider: 'completions', model: 'm' }]);
    await service.setTargets('oloid', [{ provider: 'messages', model: 'm' }]);
    await service.routesKnown();
    await service.startWorker();
  });
  afterAll(async () => {
    await server.close();
  });
  return {
    say(...said) {
      script = said;
      before = server.requests.length;
    },
    asked: () => server.requests.slice(before).map(({ body }) => JSON.parse(body) as Record<string, unknown>),
  };
}
