import type { ServerResponse } from 'node:http';

import { describe, expect, it } from '@jest/globals';

import { createAdapters } from '../../../workers/open-pipeline.ts';
import { ProviderError } from '../../../workers/providers/provider.ts';
import type { ProviderCall, ProviderEvent, ProviderSink } from '../../../workers/providers/provider.ts';
import { waitUntil } from '../../support/chat.ts';
import { callOf, providerOf } from '../../support/provider-call.ts';
import { useScriptedServer } from '../../support/scripted-server.ts';
import { listenersOf } from '../../support/signals.ts';

const textEvent = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
const END = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const COMPLETE = JSON.stringify({ choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] });

describe('a call of a provider', () => {
  const { server, http } = useScriptedServer();

  const generate = (sink: ProviderSink, more: Partial<ProviderCall> = {}) =>
    createAdapters(http).openai.generate(providerOf('openai', `${server.url}/v1`), callOf(more), sink);

  it.each([
    ['while a stream goes on', true, (res: ServerResponse) => res.writeHead(200).write(textEvent('Hi'))],
    [
      'with all of it read, on a connection that ends with it',
      true,
      (res: ServerResponse) =>
        res.writeHead(200, { connection: 'close' }).end(textEvent('Hi') + textEvent('more') + END),
    ],
    ['at the end of a complete answer', false, (res: ServerResponse) => res.end(COMPLETE)],
  ])('rejects with what its sink throws: %s', async (_when, stream, script) => {
    server.answer(script);
    const { signal } = new AbortController();
    const reason = new Error('heard enough');
    const heard: ProviderEvent[] = [];

    const call = generate(
      (event) => {
        heard.push(event);
        throw reason;
      },
      { stream, signal },
    );

    await expect(call).rejects.toBe(reason);
    expect(heard).toEqual([{ kind: 'text', text: 'Hi' }]);
    expect(listenersOf(signal)).toBe(0);
    if (stream) {
      await waitUntil(() => server.open() === 0, 'the connection to close');
    }
  });

  describe('whose pieces need not be counted', () => {
    const read = async (script: (res: ServerResponse) => void, joinsText: boolean) => {
      const heard: ProviderEvent[] = [];
      server.answer((res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        script(res);
      });
      const failure = await generate((event) => heard.push(event), { joinsText }).catch((error: unknown) => error);
      return { heard: heard.map((event) => (event.kind === 'text' ? event.text : event.kind)), failure };
    };
    // Written in one turn, they leave with one system call, each an HTTP chunk of its own.
    const atOnce = (res: ServerResponse) => {
      for (const word of ['one ', 'two ', 'three']) res.write(textEvent(word));
      res.end(END);
    };

    it('brings the text of one read of the socket as one behind the first piece', async () => {
      expect(await read(atOnce, true)).toEqual({ heard: ['one ', 'two three', 'end'], failure: undefined });
    });

    it('brings much text in pieces of 64 characters or a little more', async () => {
      const words = Array.from({ length: 40 }, (_, index) => `${String(index).padStart(19, '.')} `);
      const { heard } = await read((res) => {
        for (const word of words) res.write(textEvent(word));
        res.end(END);
      }, true);

      expect(heard.join('')).toBe(`${words.join('')}end`);
      expect(heard.map((text) => text.length)).toEqual([20, ...Array<number>(9).fill(80), 60, 3]);
    });

    it('brings what came ahead of a fault with it, and then the fault', async () => {
      const { heard, failure } = await read((res) => {
        for (const word of ['one ', 'two ', 'three']) res.write(textEvent(word));
        res.end('data: {"choices":\n\n');
      }, true);

      expect(heard).toEqual(['one ', 'two three']);
      expect(failure).toBeInstanceOf(ProviderError);
    });
  });

  it('keeps nothing for a slow sink: what it has not heard waits at the provider', async () => {
    const chunk = textEvent('x'.repeat(64 * 1024));
    let written = 0;
    server.answer((res) => {
      res.writeHead(200);
      const writeOn = () => {
        while (written < 400) {
          written += 1;
          if (!res.write(chunk)) {
            res.once('drain', writeOn);
            return;
          }
        }
        res.end(END);
      };
      writeOn();
    });
    let ahead = 0;
    let heard = 0;

    await generate((event) => {
      if (event.kind === 'end') return;
      heard += 1;
      ahead = Math.max(ahead, written - heard);
      const until = performance.now() + 1;
      while (performance.now() < until);
    });

    expect(heard).toBe(400);
    expect(ahead).toBeLessThan(200);
  });
});
