import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { openTcpProxy } from '../support/tcp-proxy.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import { startService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { runExample } from './run-example.ts';

let service: TestService;
let proxy: TcpProxy;
let cuts = 0;
let env: { BASE_URL: string; API_KEY: string };

beforeAll(async () => {
  service = await startService();
  service.provider.change({ chunks: 12, chunk_ms: 20 });
  proxy = await openTcpProxy(service.url);
  // The first answer to each new stream breaks behind its third event.
  proxy.cutReplies((reply, call) => {
    const isCut = /^POST \S+\/chat\/stream /.test(call) && reply.includes('id: 4\n');
    if (isCut) cuts += 1;
    return isCut;
  });
  const { key } = await service.startTenant();
  env = { BASE_URL: `${service.url}/platform/v1`, API_KEY: key };
});
afterAll(async () => {
  await proxy.close();
  await service.close();
});

/** The text of the answer to "Tell me about bridges.", which is the same at every call. */
async function bridges(): Promise<string> {
  const response = await fetch(`${env.BASE_URL}/chat`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${env.API_KEY}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Tell me about bridges.' }] }),
  });
  const answer = (await response.json()) as { choices: { message: { content: string } }[] };
  return answer.choices[0]?.message.content ?? '';
}

describe('the chat clients of the guide', () => {
  it.each(['javascript/chat.mjs', 'python/chat.py'] as const)(
    'the chat clients of the guide %s prints an answer and a stream',
    async (name) => {
      const text = await bridges();
      expect(await runExample(name, env)).toContain(text);
    },
  );

  it.each(['javascript/chat.mjs', 'python/chat.py'] as const)(
    '%s misses nothing of a stream that was cut',
    async (name) => {
      const text = await bridges();
      const before = cuts;

      const printed = await runExample(name, { ...env, BASE_URL: `${proxy.url}/platform/v1` });

      expect(cuts).toBe(before + 1);
      expect(printed.trimEnd().split('\n').at(-1)).toBe(text);
    },
  );

  it('javascript/openai.mjs prints an answer and a stream', async () => {
    const text = await bridges();
    const printed = await runExample('javascript/openai.mjs', env);
    expect(printed.trimEnd().split('\n').at(-1)).toBe(text);
  });
});

describe('beyond text', () => {
  it.each(['javascript/beyond-text.mjs', 'python/beyond_text.py'] as const)(
    '%s has a tool called, and prints an object, a view of an image and which texts are near',
    async (name) => {
      const lines = (await runExample(name, env)).trim().split('\n');
      expect(lines).toEqual([
        'The tool weather says: “Oslo: 7 degrees”',
        expect.stringMatching(/^\{ ?'?city'?: 'city' ?\}$/),
        expect.stringMatching(/^I see 1 image\. /),
        expect.stringMatching(/^true$/i),
      ]);
    },
  );

  it('beyond-text.sh gets a call, reads its result, and gets an object, a view of an image and a vector', async () => {
    const answers = (await runExample('curl/beyond-text.sh', env)).trim().split('\n');
    const [called, read, typed, seen, embedded] = answers.map((answer) => JSON.parse(answer));
    const textOf = ({ choices }: { choices: { message: { content: string } }[] }) => choices[0]?.message.content;

    expect(called.choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } });
    expect([textOf(read), textOf(typed)]).toEqual(['The tool weather says: “7 degrees”', '{"city":"city"}']);
    expect(textOf(seen)).toMatch(/^I see 1 image\. /);
    expect(embedded.data[0].embedding).toHaveLength(4);
  });
});

describe('the curl examples of the guide', () => {
  it('chat.sh gets an answer and a whole stream', async () => {
    const printed = await runExample('curl/chat.sh', env);
    expect(printed).toContain('"metadata":{"ticket":42}');
    expect(printed.trimEnd().endsWith('data: [DONE]')).toBe(true);
  });

  it('resume.sh reads the rest of a stream after event 2', async () => {
    const rest = (await runExample('curl/resume.sh', env)).split('resuming')[1] ?? '';
    expect(rest).toMatch(/\nid: 3\n/);
    expect(rest).not.toMatch(/\nid: 2\n/);
    expect(rest.trimEnd().endsWith('data: [DONE]')).toBe(true);
  });

  it('the curl examples of the guide retry.sh gets the same answer twice', async () => {
    const printed = await runExample('curl/retry.sh', env, { args: ['order-of-a-test'] });
    const ids = Array.from(printed.matchAll(/"id":"(req_\w+)"/g), (match) => match[1]);
    expect(new Set(ids).size).toBe(1);
    expect(ids).toHaveLength(2);
    expect(printed).toMatch(/Idempotent-Replayed: true/i);
  });

  it('async.sh looks a request up and reads its stream', async () => {
    const printed = await runExample('curl/async.sh', env);
    expect(printed).toContain('"object":"chat.request"');
    expect(printed).toContain('data: [DONE]');
  });

  it('memory.sh stores two turns and deletes the entity', async () => {
    const printed = await runExample('curl/memory.sh', env, { args: ['visitor-of-a-test'] });
    expect(printed).toContain('My name is Ada.');
    expect(printed).toContain('"deleted":true');
  });

  it('keys.sh creates, rotates and revokes a key', async () => {
    const printed = await runExample('curl/keys.sh', env);
    expect(printed).toContain('"name":"batch jobs"');
    expect(printed).toContain('"deleted":true');
  });
});
