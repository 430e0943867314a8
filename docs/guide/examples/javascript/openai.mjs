// OpenAI's own client: only `baseURL` differs. npm install openai; reads BASE_URL and API_KEY.
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY });
const messages = [{ role: 'user', content: 'Tell me about bridges.' }];

const completion = await client.chat.completions.create({ model: 'mobius', messages });
console.log(completion.choices[0].message.content, completion.usage);

const stream = await client.chat.completions.create({ model: 'mobius', messages, stream: true });
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '');
process.stdout.write('\n');
