// A complete answer and a stream that survives a lost connection. No packages; reads BASE_URL and API_KEY.
import { setTimeout as sleep } from 'node:timers/promises';

const { BASE_URL, API_KEY } = process.env;

class ChatError extends Error {
  constructor({ code, message, request_id: requestId }) {
    super(`${code}: ${message} (${requestId})`);
    this.code = code;
  }
}

/** One call. Where the service names a wait, the call is made again after it. */
async function call(method, path, { body, headers } = {}, tries = 4) {
  const response = await fetch(BASE_URL + path, {
    method,
    headers: { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/json', ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.ok) return response;
  const { error } = await response.json();
  const waitSeconds = Number(response.headers.get('Retry-After') ?? 0);
  if (waitSeconds === 0 || tries === 1) throw new ChatError(error);
  await sleep(waitSeconds * 1000);
  return call(method, path, { body, headers }, tries - 1);
}

/** Yields `{id, data}` for each event; comments such as `: ping` have neither. */
async function* eventsOf(response) {
  let rest = '';
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + text).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      const fields = Object.fromEntries(event.split('\n').map((line) => line.split(/: (.*)/s, 2)));
      if (fields.data !== undefined) yield fields;
    }
  }
}

export async function complete(body) {
  const { choices, usage } = await (await call('POST', '/chat', { body })).json();
  return { text: choices[0].message.content, finishReason: choices[0].finish_reason, usage };
}

/** Yields text as it comes. A lost connection is resumed after the last event. */
export async function* stream(body, resumes = 5) {
  let response = await call('POST', '/chat/stream', { body });
  const requestId = response.headers.get('X-Request-Id');
  for (let lastEventId = '0'; ; resumes -= 1) {
    try {
      for await (const { id, data } of eventsOf(response)) {
        lastEventId = id;
        if (data === '[DONE]') return;
        const chunk = JSON.parse(data);
        if (chunk.error) throw new ChatError(chunk.error);
        yield chunk.choices[0].delta.content ?? '';
      }
    } catch (error) {
      if (error instanceof ChatError || resumes === 0) throw error;
    }
    if (resumes === 0) throw new Error('The connection was lost too often.');
    response = await call('GET', `/chat/stream/${requestId}`, { headers: { 'Last-Event-ID': lastEventId } });
    if (response.status === 204) return;
  }
}

console.log(await complete({ messages: [{ role: 'user', content: 'What is a conversation?' }] }));
for await (const text of stream({ messages: [{ role: 'user', content: 'Tell me about bridges.' }] })) {
  process.stdout.write(text);
}
process.stdout.write('\n');
