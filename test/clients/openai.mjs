import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';

import { IMAGE, Report, answerAsks, weather } from './answer.mjs';

answerAsks(({ baseURL, apiKey, timeoutMs }) => {
  const client = new OpenAI({ baseURL, apiKey, ...(timeoutMs && { timeout: timeoutMs }) });

  async function complete({ model, content }, say, settings = {}) {
    const messages = [{ role: 'user', content }];
    const { choices } = await client.chat.completions.create({ model, messages, ...settings });
    say(choices[0].message.content);
    return choices[0].finish_reason;
  }
  async function tools({ model, content }, say, stream = false) {
    const { name, description, parameters, run } = weather;
    const offered = [zodFunction({ name, description, parameters, function: run })];
    const runner = client.chat.completions.runTools({
      model,
      messages: [{ role: 'user', content }],
      tools: offered,
      stream,
    });
    if (stream) runner.on('content', say);
    const text = await runner.finalContent();
    if (!stream) say(text);
    return (await runner.finalChatCompletion()).choices[0].finish_reason;
  }
  return {
    complete,
    json: (ask, say) => complete(ask, say, { response_format: { type: 'json_object' } }),
    async stream({ model, content }, say) {
      const messages = [{ role: 'user', content }];
      const stream = await client.chat.completions.create({ model, messages, stream: true });
      let finish;
      for await (const { choices } of stream) {
        if (!say(choices[0]?.delta.content)) break;
        finish = choices[0]?.finish_reason ?? finish;
      }
      return finish;
    },
    tools: (ask, say) => tools(ask, say),
    toolStream: (ask, say) => tools(ask, say, true),
    async schema({ model, content }, say) {
      const messages = [{ role: 'user', content }];
      const format = zodResponseFormat(Report, 'report');
      const { choices } = await client.chat.completions.parse({ model, messages, response_format: format });
      say(JSON.stringify(choices[0].message.parsed));
      return choices[0].finish_reason;
    },
    image: ({ model, content }, say) =>
      complete(
        {
          model,
          content: [
            { type: 'text', text: content },
            { type: 'image_url', image_url: { url: IMAGE } },
          ],
        },
        say,
      ),
    async embed({ model, content }, say) {
      const { data } = await client.embeddings.create({ model, input: content });
      say(JSON.stringify(data[0].embedding));
    },
  };
});
