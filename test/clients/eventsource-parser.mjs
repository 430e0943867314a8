import { EventSourceParserStream } from 'eventsource-parser/stream';

import { answerAsks } from './answer.mjs';

answerAsks(({ baseURL, apiKey }) => ({
  async stream({ model, content }, say) {
    const response = await fetch(`${baseURL}/chat/stream`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
    });
    if (!response.ok) throw Object.assign(new Error(await response.text()), { status: response.status });
    let finish;
    for await (const { data } of response.body
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream())) {
      if (data === '[DONE]') break;
      const { choices, error } = JSON.parse(data);
      if (error) throw Object.assign(new Error(error.message), { name: error.code });
      if (!say(choices[0].delta.content)) break;
      finish = choices[0].finish_reason ?? finish;
    }
    return finish;
  },
}));
