import OpenAI from 'openai';

import { answerAsks } from './answer.mjs';

answerAsks(({ baseURL, apiKey, timeoutMs }) => {
  const client = new OpenAI({ baseURL, apiKey, ...(timeoutMs && { timeout: timeoutMs }) });

  async function complete({ model, content }, say, settings = {}) {
    const messages = [{ role: 'user', content }];
    const { choices } = await client.chat.completions.create({ model, messages, ...settings });
    say(choices[0].message.content);
    return choices[0].finish_reason;
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
  };
});
