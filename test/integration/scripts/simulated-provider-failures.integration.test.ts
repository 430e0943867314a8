import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { SimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';
import { createSimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';
import type { ProviderClient } from '../../support/provider-client.ts';
import { createProviderClient, PROMPT_TOKENS, readAll, until } from '../../support/provider-client.ts';

let provider: SimulatedProvider;
let client: ProviderClient;

beforeEach(async () => {
  provider = createSimulatedProvider();
  client = createProviderClient((await provider.listen()).url);
});

afterEach(() => provider.close());

const ROLE_EVENT = expect.stringContaining('"role":"assistant"');

describe('fail=status', () => {
  it('answers the status with an error object and Retry-After, whether streamed or not', async () => {
    for (const more of [{}, { stream: true }]) {
      const response = await client.chat('sim?fail=status&status=429&retry_after=7', more);

      expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7']);
      expect(await response.json()).toMatchObject({ error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } });
    }
    expect(provider.stats()).toMatchObject({ calls: 2, failed: 2, prompt_tokens: 0, completion_tokens: 0 });
  });

  it('fails the first calls of a request id only with fail_times', async () => {
    const statuses: number[] = [];
    for (const id of ['req_a', 'req_a', 'req_b', 'req_a']) {
      statuses.push(
        (await client.chat('sim?fail=status&fail_times=2', {}, { headers: { 'X-Request-Id': id } })).status,
      );
    }

    expect(statuses).toEqual([500, 500, 500, 200]);
  });

  it('fails the same calls after a reset with fail_rate', async () => {
    const run = async () => {
      const statuses: number[] = [];
      for (let call = 0; call < 30; call++) statuses.push((await client.chat('sim?fail=status&fail_rate=0.5')).status);
      provider.reset();
      return statuses;
    };
    const first = await run();

    expect(new Set(first)).toEqual(new Set([200, 500]));
    expect(await run()).toEqual(first);
  });
});

describe('a broken stream', () => {
  it.each(['reset', 'truncate'])('%s sends so many texts, then ends without a finish reason', async (fail) => {
    const read = await client.stream(`sim?chunks=10&words=10&fail=${fail}&fail_after=3`);

    expect(read.events).toHaveLength(1 + 3);
    expect(read).toMatchObject({ finishReason: null, usage: null, broke: fail === 'reset' });
    expect(provider.stats()).toMatchObject({ failed: 1, prompt_tokens: PROMPT_TOKENS, completion_tokens: 3 });
  });

  it.each(['reset', 'truncate'])('%s sends a head and no text with fail_after=0', async (fail) => {
    const { events } = await client.stream(`sim?fail=${fail}&fail_after=0`);

    expect(events).toEqual([ROLE_EVENT]);
    expect(provider.stats()).toMatchObject({ failed: 1, prompt_tokens: 0, completion_tokens: 0 });
  });

  it.each(['reset', 'truncate', 'malformed'])('%s sends not even a head with fail_after=-1', async (fail) => {
    await expect(client.stream(`sim?fail=${fail}&fail_after=-1`)).rejects.toThrow('fetch failed');
    expect(provider.stats()).toMatchObject({ failed: 1, in_flight: 0 });
  });

  it('malformed has an event that is not JSON in place of the remaining text', async () => {
    const { events, finishReason, usage } = await client.stream('sim?chunks=10&words=10&fail=malformed&fail_after=3');

    expect(events).toHaveLength(1 + 3 + 1 + 3);
    expect(() => JSON.parse(events[4] ?? '') as unknown).toThrow(SyntaxError);
    expect(finishReason).toBe('stop');
    expect(usage?.completion_tokens).toBe(3);
    expect(provider.stats()).toMatchObject({ failed: 1, completed: 0, completion_tokens: 3 });
  });

  it('stall is silent until the reader leaves, and counts as failed', async () => {
    const leave = new AbortController();
    const model = 'sim?chunks=10&words=10&fail=stall&fail_after=2';
    const response = await client.chat(model, { stream: true }, { signal: leave.signal });
    await until(() => provider.stats().completion_tokens === 2);
    expect(provider.stats()).toMatchObject({ in_flight: 1, failed: 0 });

    leave.abort();
    expect(await readAll(response)).toMatchObject({ broke: true });
    await until(() => provider.stats().in_flight === 0);
    expect(provider.stats()).toMatchObject({ failed: 1, aborted: 0, completion_tokens: 2 });
  });
});

describe('a broken complete answer', () => {
  it('is reset ahead of its head, or after half of its body with fail_after', async () => {
    await expect(client.chat('sim?fail=reset')).rejects.toThrow('fetch failed');

    const { raw, broke } = await readAll(await client.chat('sim?fail=reset&fail_after=1'));
    expect([raw.startsWith('{"id":"chatcmpl-'), broke]).toEqual([true, true]);
  });

  it.each([0, 1])('stalls until the caller leaves with fail_after=%d', async (failAfter) => {
    const leave = new AbortController();
    const model = `sim?fail=stall&fail_after=${failAfter}`;
    const read = client.chat(model, {}, { signal: leave.signal }).then((response) => response.text());
    await until(() => provider.stats().in_flight === 1);
    leave.abort();

    await expect(read).rejects.toThrow('abort');
    await until(() => provider.stats().failed === 1);
  });

  it('is half its JSON with truncate, and JSON without choices with malformed', async () => {
    const half = await (await client.chat('sim?fail=truncate')).text();
    expect(() => JSON.parse(half) as unknown).toThrow(SyntaxError);

    expect(await client.complete('sim?fail=malformed')).toMatchObject({ choices: 'malformed on purpose' });
    expect(provider.stats()).toMatchObject({ failed: 2, completion_tokens: 0 });
  });
});

describe('usage and text that are missing', () => {
  const ZERO = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

  it('usage=absent tells nothing and usage=zero zeros, while the books say what was sent', async () => {
    expect(await client.complete('sim?words=5&usage=absent')).not.toHaveProperty('usage');
    expect(await client.stream('sim?words=5&usage=absent')).toMatchObject({ usage: null, finishReason: 'stop' });
    expect((await client.complete('sim?words=5&usage=zero')).usage).toEqual(ZERO);
    expect(await client.stream('sim?words=5&usage=zero')).toMatchObject({ usage: ZERO, finishReason: 'stop' });

    const counts = { completed: 4, failed: 0, completion_tokens: 20, prompt_tokens: 4 * PROMPT_TOKENS };
    expect(provider.stats()).toMatchObject(counts);
  });

  it('usage and text that are missing empty ends regularly without text', async () => {
    const { choices } = await client.complete('sim?fail=empty');
    const { text, finishReason, usage } = await client.stream('sim?fail=empty');

    expect([choices[0]?.message.content, text, finishReason]).toEqual(['', '', 'stop']);
    expect(usage).toMatchObject({ prompt_tokens: PROMPT_TOKENS, completion_tokens: 0 });
  });
});
