import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { chatOf, errorOf, expectUncharged, postChat, postStream } from '../../support/chat.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import type { ScriptedServer } from '../../support/scripted-server.ts';
import { useService } from '../../support/use-service.ts';
import { createSimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';

/** docs/spec.md#routing: a scripted target first, a sound one behind it. */
describe('a request whose first target does not serve it', () => {
  const backup = createSimulatedProvider({ defaults: { text: 'from the backup' } });
  let primary: ScriptedServer;
  const FIRST_TOKEN_MS = 400;
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    primary = await startScriptedServer();
    const { url } = await backup.listen();
    const settings = { kind: 'openai', base_url: `${primary.url}/v1`, api_key: 'k', max_retries: 2 };
    await service.setProvider({ ...settings, first_token_timeout_ms: FIRST_TOKEN_MS, timeout_ms: 10_000 }, 'primary');
    await service.setProvider({ base_url: `${url}/v1` }, 'backup');
    const first = { provider: 'primary', model: 'm', priority: 1, context_window: 8_000 };
    await service.setTargets('mobius', [
      first,
      { provider: 'backup', model: 'small', priority: 2, context_window: 6_000 },
      { provider: 'backup', model: 'large', priority: 3, context_window: 8_000 },
    ]);
    await service.setTargets('oloid', [first]);
    await service.startWorker();
  });
  beforeEach(async () => {
    primary.requests.length = 0;
    backup.reset();
    await service.resetBreakers();
  });
  afterAll(async () => {
    await backup.close();
    await primary.close();
  });

  const refusing = (error: object) => {
    primary.answer((res) => {
      res.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
    });
  };

  it.each([
    ['complete', postChat],
    ['streamed', postStream],
  ])('is answered by the next one after a single silent call (%s)', async (_kind, post) => {
    primary.answer(() => undefined);
    const { key } = await service.startTenant();
    const startedAt = performance.now();

    const response = await post(service.app, key, chatOf('Anybody there?'));

    expect(response.status).toBe(200);
    expect(JSON.stringify(response.body)).toContain('backup');
    expect(primary.requests).toHaveLength(1);
    expect(performance.now() - startedAt).toBeLessThan(8 * FIRST_TOKEN_MS);
  });

  it('is asked of a silent target again where there is no other', async () => {
    primary.answer(() => undefined);
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('Anybody there?', { model: 'oloid' }));

    expect(errorOf(response)).toMatchObject({ code: 'timeout' });
    expect(primary.requests).toHaveLength(3);
  });

  it('waits for a target that sends something, although no text yet', async () => {
    primary.answer((res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      let left = 6;
      const timer = setInterval(() => {
        left -= 1;
        if (left > 0) {
          res.write(': still thinking\n\n');
          return;
        }
        clearInterval(timer);
        const choice = { index: 0, delta: { content: 'thought through' }, finish_reason: 'stop' };
        res.end(`data: ${JSON.stringify({ choices: [choice] })}\n\ndata: [DONE]\n\n`);
      }, FIRST_TOKEN_MS / 3);
    });
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('Think'));

    expect(String(response.body)).toContain('thought through');
    expect(primary.requests).toHaveLength(1);
  });

  it('goes to the next target with a window that is no smaller when its prompt is too long for this one', async () => {
    refusing({ code: 'context_length_exceeded', type: 'invalid_request_error', message: 'Too long' });
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf('A long story', { max_tokens: 100 }));

    expect(response.status).toBe(200);
    expect(response.text).toContain('backup');
    expect(primary.requests).toHaveLength(1);
    expect(backup.stats()).toMatchObject({ calls: 1 });
    const { body } = await service.admin('get', '/breakers?limit=100');
    expect(body.data).toContainEqual(expect.objectContaining({ id: 'primary', state: 'closed', recent_failures: 0 }));
  });

  it('asks for as long an answer as its window leaves, where the caller named no max_tokens', async () => {
    primary.answer((res) => {
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Well.' }, finish_reason: 'stop' }];
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices }));
    });
    const { key } = await service.startTenant();
    const messages = Array.from({ length: 3 }, () => ({ role: 'user', content: 'river '.repeat(2_000).trim() }));

    const response = await postChat(service.app, key, { messages, model: 'oloid' });

    expect(response.status).toBe(200);
    // 6,012 tokens by our count, and a margin of 64 and an eighth of them.
    expect(JSON.parse(primary.requests[0]?.body ?? '')).toMatchObject({ max_tokens: 8_000 - 6_012 - 64 - 752 });
  });

  it('is 400 context_length_exceeded when the prompt is too long for every target', async () => {
    refusing({ type: 'invalid_request_error', message: 'prompt is too long: 215000 tokens > 200000 maximum' });
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const response = await postChat(service.app, key, chatOf('A long story', { model: 'oloid' }));

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({
      code: 'context_length_exceeded',
      param: 'messages',
      message: expect.stringContaining('maximum context length is 8000 tokens'),
    });
    await expectUncharged(service, tenantId, 10_000);
  });

  it("is 400 content_policy_violation when the provider's content filter refuses it, and nobody else is asked", async () => {
    refusing({ code: 'content_filter', message: 'The prompt was filtered', innererror: { code: 'ResponsibleAI' } });
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const response = await postChat(service.app, key, chatOf('Something'));

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'content_policy_violation' });
    expect(primary.requests).toHaveLength(1);
    expect(backup.stats()).toMatchObject({ calls: 0 });
    await expectUncharged(service, tenantId, 10_000);
  });
});
