/** Vercel's AI SDK, with the provider that is named: `compatible`, or `openai`, whose `.chat()` it needs. */
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Output, embed, generateText, stepCountIs, streamText, tool } from 'ai';

import { IMAGE, Report, answerAsks, weather } from './answer.mjs';

const [provider] = process.argv.slice(2);

const { description, parameters: inputSchema, run: execute } = weather;
const TOOLS = { tools: { [weather.name]: tool({ description, inputSchema, execute }) }, stopWhen: stepCountIs(3) };

answerAsks(({ baseURL, apiKey, model: name }) => {
  const from =
    provider === 'openai'
      ? createOpenAI({ baseURL, apiKey })
      : createOpenAICompatible({ name: 'parley', baseURL, apiKey, supportsStructuredOutputs: true });
  const model = provider === 'openai' ? from.chat(name) : from.chatModel(name);

  async function complete({ content }, say, settings = {}) {
    const { text, finishReason } = await generateText({ model, prompt: content, ...settings });
    say(text);
    return finishReason;
  }
  async function stream({ content }, say, settings = {}) {
    const leaving = new AbortController();
    const asked = { model, prompt: content, abortSignal: leaving.signal, onError: () => {} };
    const result = streamText({ ...asked, ...settings });
    let finish;
    for await (const part of result.fullStream) {
      if (part.type === 'error') throw part.error;
      if (part.type === 'text-delta' && !say(part.text)) leaving.abort();
      if (part.type === 'finish') finish = part.finishReason;
    }
    return finish;
  }
  return {
    complete,
    json: (ask, say) => complete(ask, say, { output: Output.json() }),
    stream: (ask, say) => stream(ask, say),
    tools: (ask, say) => complete(ask, say, TOOLS),
    toolStream: (ask, say) => stream(ask, say, TOOLS),
    async schema({ content }, say) {
      const { output, finishReason } = await generateText({
        model,
        prompt: content,
        output: Output.object({ schema: Report }),
      });
      say(JSON.stringify(output));
      return finishReason;
    },
    async image({ content }, say) {
      const parts = [
        { type: 'text', text: content },
        { type: 'image', image: IMAGE },
      ];
      const { text, finishReason } = await generateText({ model, messages: [{ role: 'user', content: parts }] });
      say(text);
      return finishReason;
    },
    async embed({ content }, say) {
      const { embedding } = await embed({ model: from.embeddingModel(name), value: content });
      say(JSON.stringify(embedding));
    },
  };
});
