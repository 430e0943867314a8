import { describe, expect, it } from '@jest/globals';

import type { Provider } from '../../shared/domain/routing/routing.ts';
import { runProviderCall } from '../../workers/pipeline/provider-call/run-provider-call.ts';
import type { ProviderCallResult } from '../../workers/pipeline/provider-call/run-provider-call.ts';
import { createAdapters } from '../../workers/open-pipeline.ts';
import { readyCall } from '../support/ready-call.ts';
import { waitFor } from '../support/chat.ts';
import { useScriptedServer } from '../support/scripted-server.ts';

const text = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
const END = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

describe('the connection of a provider call', () => {
  const { server, http } = useScriptedServer();

  function run(firstTokenMs = 5_000): Promise<ProviderCallResult> {
    const provider: Provider = {
      name: 'p',
      kind: 'openai',
      baseUrl: `${server.url}/v1`,
      timeoutMs: 5_000,
      firstTokenTimeoutMs: 5_000,
      maxRetries: 0,
    };
    const { input } = readyCall({ provider, firstTokenMs, betweenTokensMs: 200 });
    return runProviderCall(createAdapters(http).openai, input);
  }

  const abandoned = () =>
    waitFor(() => (server.abandoned() === 1 ? true : undefined), 'the provider to see its connection close', 5_000);

  it('the connection of a provider call serves the next one', async () => {
    server.answer((res) => res.writeHead(200).end(text('Hi') + END));

    for (let call = 0; call < 20; call += 1) expect(await run()).toMatchObject({ finishReason: 'stop' });

    // One that has just become free may be overlooked once.
    expect(server.connections()).toBeLessThanOrEqual(2);
    expect(server.abandoned()).toBe(0);
  });

  it('is closed by a limit for the first token', async () => {
    server.answer((res) => res.writeHead(200).write(': waiting\n\n'));

    await expect(run(50)).rejects.toThrow('no first token within 50 ms');

    await abandoned();
  });

  it('the connection of a provider call is closed by silence between two tokens', async () => {
    server.answer((res) => res.writeHead(200).write(text('Hi')));

    await expect(run()).rejects.toThrow('no next token within 200 ms');

    await abandoned();
  });

  it('is closed where the answer is cut by moderation', async () => {
    server.answer((res) => res.writeHead(200).write(text('Well, a parley moderation test. ')));

    expect(await run()).toMatchObject({ finishReason: 'content_filter' });

    await abandoned();
  });

  it('is closed where the provider keeps it open after the end, and the answer does not wait for that', async () => {
    server.answer((res) => res.writeHead(200).write(text('Hi') + END));

    expect(await run()).toMatchObject({ finishReason: 'stop' });

    expect(server.abandoned()).toBe(0);
    await abandoned();
  });
});
