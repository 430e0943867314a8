/**
 * Answers the asks of the tests, one JSON object a line on standard input, each with a line on standard output: `text`
 * that was heard, the `finish` reason, or the `error` that the client raised. Many may be asked at once.
 *
 * `open` makes the client of an ask: `{ baseURL, apiKey, timeoutMs }`. Its methods `complete`, `stream` and `json` take
 * the ask (`model`, `content`) and `say`, which gets each text and returns false if the reader wants no more. They
 * resolve with the finish reason.
 */
import { createInterface } from 'node:readline';

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
