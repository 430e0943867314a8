import { ChatOpenAI } from '@langchain/openai';

import { answerAsks } from './answer.mjs';

answerAsks(({ baseURL, apiKey, model: name, timeoutMs }) => {
  const model = new ChatOpenAI({
    model: name,
    apiKey,
    configuration: { baseURL },
    ...(timeoutMs && { timeout: timeoutMs }),
  });

  async function complete({ content }, say, asked = model) {
    const { text, response_metadata: about } = await asked.invoke(content);
    say(text);
    return about.finish_reason;
  }
  return {
    complete,
    json: (ask, say) => complete(ask, say, model.withConfig({ response_format: { type: 'json_object' } })),
    async stream({ content }, say) {
      let finish;
      for await (const { text, response_metadata: about } of await model.stream(content)) {
        if (!say(text)) break;
        finish = about.finish_reason ?? finish;
      }
      return finish;
    },
  };
});
