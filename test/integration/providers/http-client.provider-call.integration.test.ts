import type { ServerResponse } from 'node:http';

import { describe, expect, it } from '@jest/globals';

import type { Provider } from '../../../shared/domain/routing.ts';
import { runProviderCall } from '../../../workers/pipeline/run-provider-call.ts';
import type { ProviderCallResult } from '../../../workers/pipeline/run-provider-call.ts';
import { createAdapters } from '../../../workers/open-pipeline.ts';
import type { ProviderAdapter } from '../../../workers/providers/provider.ts';
import { plainEnvelope } from '../../support/plain-envelope.ts';
import { readyCall } from '../../support/ready-call.ts';
import type { ReadyCall } from '../../support/ready-call.ts';
import { waitFor, waitUntil } from '../../support/chat.ts';
import { useScriptedServer } from '../../support/scripted-server.ts';

const text = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
const FINISH = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n';
const END = `${FINISH}data: [DONE]\n\n`;

describe('the connection of a provider call', () => {
  const { server, http } = useScriptedServer();

  let texts: string[] = [];
  function readyOf({ firstTokenMs = 5_000, timeoutMs = 5_000 } = {}): ReadyCall {
    const provider: Provider = {
      name: 'p',
      kind: 'openai',
      baseUrl: `${server.url}/v1`,
      timeoutMs,
      firstTokenTimeoutMs: 5_000,
      maxRetries: 0,
    };
    const ready = readyCall({ provider, firstTokenMs, silenceMs: 200 });
    texts = ready.texts;
    return ready;
  }
  const run = (times?: Parameters<typeof readyOf>[0]): Promise<ProviderCallResult> =>
    runProviderCall(createAdapters(http).openai, readyOf(times).input);

  const abandoned = () =>
    waitFor(() => (server.abandoned() === 1 ? true : undefined), 'the provider to see its connection close', 5_000);

  it('is closed where the provider keeps it open after the end, and the answer does not wait for that', async () => {
    server.answer((res) => res.writeHead(200).write(text('Hi') + END));

    expect(await run()).toMatchObject({ finishReason: 'stop' });

    expect(server.abandoned()).toBe(0);
    await abandoned();
  });

  it.each([
    ['an error of the connection', (res: ServerResponse) => res.socket?.resetAndDestroy()],
    ['silence', () => undefined],
  ])('gives the last words, which moderation held back, where %s follows the finish reason', async (_what, end) => {
    server.answer((res) => {
      res.writeHead(200).write(text('one, two parley mod') + FINISH);
      setImmediate(end, res);
    });

    expect(await run({ timeoutMs: 800 })).toMatchObject({ finishReason: 'stop' });
    expect(texts.join('')).toBe('one, two parley mod');
  });

  it('is closed amid a document that probabilities of tokens make too large, which is its caller’s fault', async () => {
    server.answer((res) => res.writeHead(200).write(`{"choices":[${' '.repeat(9 * 1024 * 1024)}`));
    const envelope = plainEnvelope({ passed: { logprobs: true, top_logprobs: 20 } });
    const input = { ...readyOf().input, envelope, stream: false };

    await expect(runProviderCall(createAdapters(http).openai, input)).rejects.toMatchObject({ param: 'top_logprobs' });
    await abandoned();
  });

  it('is none where the caller leaves behind the finish reason', async () => {
    server.answer((res) => res.writeHead(200).write(text('one, two') + FINISH));
    const { input, stop } = readyOf();
    const result = runProviderCall(createAdapters(http).openai, input);
    await waitUntil(() => texts.length > 0, 'the first text');

    stop(new Error('The caller has left'));

    expect(await result).toMatchObject({ finishReason: 'stop' });
  });

  it('is not over with its first finish reason where the server gives one with every chunk', async () => {
    const chunk = (content: string) =>
      `data: ${JSON.stringify({ choices: [{ delta: { content }, finish_reason: 'stop' }] })}\n\n`;
    server.answer((res) => {
      res.writeHead(200).write(chunk('one '));
      let left = 4;
      const timer = setInterval(() => {
        res.write(chunk('more '));
        left -= 1;
        if (left > 0) return;
        clearInterval(timer);
        res.end('data: [DONE]\n\n');
      }, 60);
    });
    // Shorter than the whole answer, longer than one pause.
    const adapter = createAdapters(http).openai;
    const impatient: ProviderAdapter = {
      generate: (provider, call, sink) => adapter.generate(provider, { ...call, endWaitMs: 150 }, sink),
    };

    expect(await runProviderCall(impatient, readyOf().input)).toMatchObject({ finishReason: 'stop' });
    expect(texts.join('')).toBe('one more more more more ');
  });
});
