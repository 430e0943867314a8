/** The browser's EventSource as a package, which can send the key. It only reads: the request is sent before it opens. */
import { EventSource } from 'eventsource';

import { answerAsks } from './answer.mjs';
import { begin } from './begin-stream.mjs';

answerAsks(({ baseURL, apiKey }) => {
  const Authorization = `Bearer ${apiKey}`;
  const fetchWithKey = (url, init) => fetch(url, { ...init, headers: { ...init.headers, Authorization } });
  return {
    async stream(ask, say) {
      const source = new EventSource(`${baseURL}/chat/stream/${await begin(ask)}`, { fetch: fetchWithKey });
      try {
        return await new Promise((resolve, reject) => {
          let finish;
          source.onerror = ({ message, code }) => reject(Object.assign(new Error(message), { status: code }));
          source.onmessage = ({ data }) => {
            if (data === '[DONE]') return resolve(finish);
            const { choices, error } = JSON.parse(data);
            if (error) return reject(Object.assign(new Error(error.message), { name: error.code }));
            if (!say(choices[0].delta.content)) return resolve(finish);
            finish = choices[0].finish_reason ?? finish;
          };
        });
      } finally {
        source.close();
      }
    },
  };
});
