import type { ServerResponse } from 'node:http';

import { describe, expect, it } from '@jest/globals';

import { createEndpoint } from '../../../workers/providers/http-call.ts';
import { waitUntil } from '../../support/chat.ts';
import { useScriptedServer } from '../../support/scripted-server.ts';

/** Longer than a part takes on this machine. */
const A_WHILE_MS = 50;

describe('a body that need not be read as it comes', () => {
  const { server, http } = useScriptedServer();

  /** A call whose server says what the test lets it say, and whose client reads when the test lets it. */
  async function begin({ isPaced = true } = {}) {
    const parts: string[] = [];
    const waiting: (() => void)[] = [];
    let responding: ServerResponse | undefined;
    server.answer((res) => {
      responding = res;
      res.writeHead(200).write('first ');
    });
    const state = { isOver: false };
    const over = http
      .post({
        endpoint: createEndpoint(`${server.url}/`, {}),
        body: '',
        signal: new AbortController().signal,
        scheduleRead: () => (isPaced ? (act) => waiting.push(act) : undefined),
        onHead: () => (part) => parts.push(part.toString()),
      })
      .then(() => (state.isOver = true));
    await waitUntil(() => parts.length === 1, 'the first part');
    const res = responding;
    const pass = () => new Promise((resolve) => setTimeout(resolve, A_WHILE_MS));
    const say = async (text: string) => {
      res?.write(text);
      await pass();
    };
    const readOn = () => {
      for (const act of waiting.splice(0)) act();
    };
    return { parts, waiting, state, over, say, pass, end: () => res?.end(), readOn, text: () => parts.join('') };
  }

  it('is left in the connection, and read in one go when the time has come', async () => {
    const { waiting, say, readOn, text, end, over } = await begin();
    // The connection was being read already when the first part said that it may wait.
    await say('second ');
    expect(text()).toBe('first second ');
    await say('third ');
    await say('fourth ');
    expect(text()).toBe('first second ');
    expect(waiting).toHaveLength(1);

    readOn();
    await waitUntil(() => text() === 'first second third fourth ', 'what was left');

    expect(waiting).toHaveLength(1);
    end();
    readOn();
    await over;
  });

  it('leaves its connection to the next call, which is read as it comes', async () => {
    const { say, pass, readOn, over, end } = await begin();
    await say('second ');
    end();
    readOn();
    await over;
    await pass();

    const next = await begin({ isPaced: false });
    await next.say('second ');

    expect(next.text()).toBe('first second ');
    expect(server.connections()).toBe(1);
    next.end();
    await next.over;
  });

  it('can be given up while it is left alone', async () => {
    const parts: string[] = [];
    const waiting: (() => void)[] = [];
    const controller = new AbortController();
    server.answer((res) => {
      res.writeHead(200);
      const timer = setInterval(() => res.write('more '), 10);
      res.on('close', () => {
        clearInterval(timer);
      });
    });
    const reason = new Error('stopped');
    const over = http.post({
      endpoint: createEndpoint(`${server.url}/`, {}),
      body: '',
      signal: controller.signal,
      scheduleRead: () => (act) => waiting.push(act),
      onHead: () => (part) => parts.push(part.toString()),
    });
    over.catch(() => undefined);
    await waitUntil(() => waiting.length > 0, 'the connection to be left alone');

    controller.abort(reason);

    await expect(over).rejects.toBe(reason);
    await waitUntil(() => server.abandoned() === 1, 'the connection to close');
    for (const act of waiting) act();
  });
});
