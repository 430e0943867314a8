/**
 * Answers the asks of the tests, one JSON object a line on standard input, each with a line on standard output: `text`
 * that was heard, the `finish` reason, or the `error` that the client raised. Many may be asked at once.
 *
 * `open` makes the client of an ask: `{ baseURL, apiKey, timeoutMs }`. Its methods, of which `ask.call` names one, take
 * the ask (`model`, `content`) and `say`, which gets each text and returns false if the reader wants no more. They
 * resolve with the finish reason. `tools` and `toolStream` offer the tool below; `schema` wants a Report, `image` also
 * sends an image, and `embed` wants a vector; these two say what they got as JSON.
 */
import { createInterface } from 'node:readline';

import { z } from 'zod';

export const IMAGE =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export const Report = z.object({ city: z.string(), degrees: z.number().int(), wind: z.enum(['calm', 'storm']) });
/** The one tool, as each client wants it. */
export const weather = {
  name: 'weather',
  description: 'The weather of a city.',
  parameters: z.object({ city: z.string() }),
  run: ({ city }) => `${city}: 7 degrees`,
};
/** The tool in OpenAI's form. */
export const TOOL = {
  type: 'function',
  function: { name: weather.name, description: weather.description, parameters: z.toJSONSchema(weather.parameters) },
};

export function answerAsks(open) {
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const ask = JSON.parse(line);
    const heard = [];
    const say = (text) => {
      if (text) heard.push(text);
      return !(ask.leaves && heard.length > 0);
    };
    const outcome = await open(ask)
      [ask.call](ask, say)
      .then(
        (finish) => ({ finish }),
        (error) => ({ error: describe(error) }),
      );
    console.log(JSON.stringify({ id: ask.id, text: heard.join(''), ...outcome }));
  });
}

const describe = (error) => ({
  name: error.name,
  status: error.status ?? error.statusCode,
  message: String(error.message),
});
