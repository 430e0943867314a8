import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, errorOf, waitFor, waitUntil } from '../../support/chat.ts';
import { useTwoProtocols } from '../../support/two-protocols.ts';
import { useService } from '../../support/use-service.ts';

const service = useService({ workers: 0 });
const { say, asked } = useTwoProtocols(service);
const SAID = { prompt: 9, completion: 1, texts: ['Fine.'] };

const IMAGE = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
const TOOL = { type: 'function', function: { name: 'add', parameters: { type: 'object' } } };
const CALL = { id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"x":1}' } };

async function post(fields: object) {
  const { key } = await service.startTenant();
  say(SAID);
  return request(service.app)
    .post('/platform/v1/chat/completions')
    .auth(key, { type: 'bearer' })
    .send(chatOf('Hi', fields));
}

describe('a provider of OpenAI’s protocol', () => {
  it('gets tools, parts, results and unknown fields as they came', async () => {
    const messages = [
      { role: 'user', name: 'Ann', content: [{ type: 'text', text: 'See' }, IMAGE] },
      { role: 'assistant', content: null, tool_calls: [CALL] },
      { role: 'tool', tool_call_id: 'call_1', content: '3' },
    ];
    const fields = { tools: [TOOL], tool_choice: 'auto', logit_bias: { 7: 1 }, top_k: 5, vendor: { deep: [1] } };

    const response = await post({ model: 'mobius', messages, ...fields });

    expect(response.status).toBe(200);
    expect(response.headers).not.toHaveProperty('x-ignored-fields');
    expect(asked()).toEqual([expect.objectContaining({ messages, ...fields })]);
  });

  it('gets a name of its caller that no other tenant has', async () => {
    await post({ model: 'mobius', user: 'u1', prompt_cache_key: 'u1' });

    const [body] = asked();
    expect(body?.['user']).toMatch(/^[\w-]{22}$/);
    expect(body?.['prompt_cache_key']).toBe(body?.['user']);
  });

  it('gets nothing that would run the request at another price or before others, which is named', async () => {
    const response = await post({ model: 'mobius', service_tier: 'priority', store: true, priority: -9 });

    expect(response.headers['x-ignored-fields']).toBe('service_tier, store, priority');
    expect(asked()[0]).not.toHaveProperty('service_tier');
    expect(asked()[0]).not.toHaveProperty('priority');
  });
});

describe('a model whose targets cannot do all', () => {
  it('is refused what would change the answer, with the field', async () => {
    for (const [fields, param, say] of [
      [{ logprobs: true }, 'logprobs', 'does not take the probabilities of tokens'],
      [{ logit_bias: { 7: 1 } }, 'logit_bias', 'does not take `logit_bias`'],
      [{ tools: [{ type: 'custom', custom: { name: 'run' } }] }, 'tools', 'does not take tools of the type `custom`'],
    ] as const) {
      const response = await post({ model: 'oloid', ...fields });
      expect(response.status).toBe(400);
      expect(errorOf(response)).toMatchObject({
        code: 'invalid_request',
        param,
        message: expect.stringContaining(`The model \`oloid\` ${say}; leave it out`),
      });
      expect(asked()).toEqual([]);
    }
  });

  it('goes without the settings that only the other protocol has, and says so', async () => {
    const response = await post({ model: 'oloid', temperature: 0.5, seed: 7, reasoning_effort: 'low' });

    expect(response.status).toBe(200);
    expect(response.headers['x-ignored-fields']).toBe('seed, reasoning_effort');
  });

  it('asks those of its targets that can, as the administrator says', async () => {
    await service.setTargets('mobius', [
      { provider: 'completions', model: 'blind', priority: 1, capabilities: ['tools'] },
      { provider: 'completions', model: 'seeing', priority: 2, capabilities: ['images'] },
    ]);
    const messages = [{ role: 'user', content: [IMAGE] }];
    // Ingress and worker hear of it within a second.
    await waitFor(async () => {
      const response = await post({ model: 'mobius', messages, tools: [TOOL] });
      return response.status === 400 ? response : undefined;
    }, 'the new targets').then((response) => {
      expect(errorOf(response)['message']).toContain('does not take images and tools in one request');
    });

    const modelOf = async (fields: object) => {
      await post({ model: 'mobius', ...fields });
      return asked()[0]?.['model'];
    };
    expect(await waitFor(async () => ((await modelOf({})) === 'blind' ? true : undefined), 'the worker')).toBe(true);
    expect(await modelOf({ messages })).toBe('seeing');
    expect(await modelOf({ tools: [TOOL] })).toBe('blind');
  });
});

describe('max_tokens', () => {
  it('is what the model can make where it is more, and the answer is charged up to that', async () => {
    await service.setTargets('mobius', [
      { provider: 'completions', model: 'long', priority: 1, max_output_tokens: 32_000 },
      { provider: 'completions', model: 'short', priority: 2, max_output_tokens: 8_000 },
    ]);
    const ask = async (most: number | undefined, completion: number) => {
      const { key } = await service.startTenant();
      say({ ...SAID, completion });
      const body = chatOf('Hi', { model: 'mobius', max_tokens: most });
      const { body: answer } = await request(service.app)
        .post('/platform/v1/chat/completions')
        .auth(key, { type: 'bearer' })
        .send(body);
      return [asked()[0]?.['max_tokens'], (answer as { usage: Record<string, number> }).usage['completion_tokens']];
    };
    await waitUntil(async () => (await ask(20_000, 1))[0] === 20_000, 'the new targets');

    expect(await ask(100_000, 30_000)).toEqual([32_000, 30_000]);
    expect(await ask(100_000, 40_000)).toEqual([32_000, 32_000]);
    expect(await ask(5, 5)).toEqual([5, 5]);
    expect(await ask(undefined, 5)).toEqual([32_000, 5]);
    await service.setTargets('mobius', [{ provider: 'completions', model: 'short', max_output_tokens: 8_000 }]);
    await waitUntil(async () => (await ask(10_000, 1))[0] === 8_000, 'the shorter answers');
    await service.setTargets('mobius', [{ provider: 'completions', model: 'long' }]);
    await waitUntil(async () => (await ask(20_000, 1))[0] === 16_384, 'a target that says nothing');
    expect(await ask(undefined, 5)).toEqual([4_096, 5]);
  });
});
