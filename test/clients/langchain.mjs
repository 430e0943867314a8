import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';

import { IMAGE, Report, TOOL, answerAsks, weather } from './answer.mjs';

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
  /** Reads answers with `read` until one has no calls. */
  async function converse({ content }, read) {
    const bound = model.bindTools([TOOL]);
    const messages = [{ role: 'user', content }];
    for (;;) {
      const answer = await read(bound, messages);
      if (answer.tool_calls.length === 0) return answer.response_metadata.finish_reason;
      messages.push(answer);
      for (const { id, args } of answer.tool_calls)
        messages.push({ role: 'tool', tool_call_id: id, content: weather.run(args) });
    }
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
    tools: (ask, say) =>
      converse(ask, async (bound, messages) => {
        const answer = await bound.invoke(messages);
        say(answer.text);
        return answer;
      }),
    toolStream: (ask, say) =>
      converse(ask, async (bound, messages) => {
        let answer;
        for await (const chunk of await bound.stream(messages)) {
          say(chunk.text);
          answer = answer === undefined ? chunk : answer.concat(chunk);
        }
        return answer;
      }),
    async schema({ content }, say) {
      say(JSON.stringify(await model.withStructuredOutput(Report).invoke(content)));
    },
    image: ({ content }, say) =>
      complete(
        {
          content: [
            {
              role: 'user',
              content: [
                { type: 'text', text: content },
                { type: 'image_url', image_url: { url: IMAGE } },
              ],
            },
          ],
        },
        say,
      ),
    async embed({ content }, say) {
      const embeddings = new OpenAIEmbeddings({ model: name, apiKey, configuration: { baseURL } });
      say(JSON.stringify(await embeddings.embedQuery(content)));
    },
  };
});
