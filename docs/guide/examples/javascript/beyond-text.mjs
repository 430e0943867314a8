// A tool, an answer that fits a schema, an image, embeddings: with OpenAI's client (npm install openai). Reads BASE_URL and API_KEY.
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY });
const ask = async (content, more = {}) => {
  const messages = [{ role: 'user', content }];
  const { choices } = await client.chat.completions.create({ model: 'mobius', messages, ...more });
  return choices[0].message.content;
};

const city = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const weather = ({ city }) => `${city}: 7 degrees`;
const conversation = client.chat.completions.runTools({
  model: 'mobius',
  // A real model needs no mark to call a tool.
  messages: [{ role: 'user', content: 'What is it like in Oslo? simulate-tool=weather{"city":"Oslo"}' }],
  tools: [{ type: 'function', function: { name: 'weather', parameters: city, parse: JSON.parse, function: weather } }],
});
console.log(await conversation.finalContent());

const format = { type: 'json_schema', json_schema: { name: 'place', strict: true, schema: city } };
console.log(JSON.parse(await ask('Where is the Holmenkollen?', { response_format: format })));

const pixel = 'data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7';
console.log(
  await ask([
    { type: 'text', text: 'What do you see?' },
    { type: 'image_url', image_url: { url: pixel } },
  ]),
);

const { data } = await client.embeddings.create({ model: 'embedding', input: ['a river', 'a wide river', 'a window'] });
const [river, wide, window] = data.map(({ embedding }) => embedding);
const nearness = (one, other) => one.reduce((sum, value, index) => sum + value * other[index], 0);
console.log(nearness(river, wide) > nearness(river, window));
