/** Vercel's AI SDK, with the provider that is named: `compatible`, or `openai`, whose `.chat()` it needs. */
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Output, generateText, streamText } from 'ai';

import { answerAsks } from './answer.mjs';

const [provider] = process.argv.slice(2);

answerAsks(({ baseURL, apiKey, model: name }) => {
  const model =
    provider === 'openai'
      ? createOpenAI({ baseURL, apiKey }).chat(name)
      : createOpenAICompatible({ name: 'parley', baseURL, apiKey }).chatModel(name);

  async function complete({ content }, say, settings = {}) {
    const { text, finishReason } = await generateText({ model, prompt: content, ...settings });
    say(text);
    return finishReason;
  }
  return {
    complete,
    json: (ask, say) => complete(ask, say, { output: Output.json() }),
    async stream({ content }, say) {
      const leaving = new AbortController();
      const result = streamText({ model, prompt: content, abortSignal: leaving.signal, onError: () => {} });
      let finish;
      for await (const part of result.fullStream) {
        if (part.type === 'error') throw part.error;
        if (part.type === 'text-delta' && !say(part.text)) leaving.abort();
        if (part.type === 'finish') finish = part.finishReason;
      }
      return finish;
    },
  };
});
