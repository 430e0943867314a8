import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import {
  chatOf,
  errorOf,
  expectUncharged,
  ledgerOf,
  parseSse,
  postChat,
  postStream,
  requestIdOf,
  textOf,
  waitUntil,
} from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

/** `mobius` waits 300 ms for a first token, `oloid` 500 ms for a whole answer. Neither is tried again. */
describe('a provider that takes too long', () => {
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    await service.setProvider({ max_retries: 0, first_token_timeout_ms: 300 });
    await service.setProvider({ max_retries: 0, timeout_ms: 500 }, 'short');
    await service.setTargets('oloid', [{ provider: 'short', model: 'sim' }]);
    await service.startWorker();
  });
  afterEach(() => {
    service.provider.restore();
    service.provider.reset();
  });
  afterAll(() => {
    expect(service.log.errors()).toEqual([]);
  });

  /** The provider has noticed that its call was given up: the connection is closed, not left to run. */
  async function expectAborted(requestId: string): Promise<void> {
    await waitUntil(() => service.provider.request(requestId)?.aborted === 1, 'the provider to see its call end');
    expect(service.provider.stats().in_flight).toBe(0);
  }

  it('for its first token: 504 before the stream begins, the call is ended, nothing is charged', async () => {
    service.provider.change({ first_token_ms: 60_000 });
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const response = await postStream(service.app, key, chatOf('Slow'));

    expect(response.status).toBe(504);
    expect(errorOf(response)).toMatchObject({ code: 'timeout', type: 'timeout_error' });
    await expectAborted(requestIdOf(response));
    await expectUncharged(service, tenantId, 10_000);
  });

  it('for its first token has longer for a prompt that takes long to read', async () => {
    service.provider.change({ first_token_ms: 500 });
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('long '.repeat(3_200)));

    expect(response.status).toBe(200);
  });

  it('for a whole complete answer: 504, the call is ended, nothing is charged', async () => {
    service.provider.change({ first_token_ms: 60_000 });
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const response = await postChat(service.app, key, chatOf('Slow', { model: 'oloid' }));

    expect(response.status).toBe(504);
    expect(errorOf(response)).toMatchObject({ code: 'timeout' });
    await expectAborted(requestIdOf(response));
    await expectUncharged(service, tenantId, 10_000);
  });

  it('for a whole streamed answer: the typed error after what came, charged as the flagged estimate', async () => {
    service.provider.change({ chunks: 200, chunk_ms: 50 });
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('Endless', { model: 'oloid' }));

    const events = parseSse(String(response.body));
    expect(textOf(events)).not.toBe('');
    expect(events.at(-1)?.chunk).toMatchObject({ choices: [{ finish_reason: 'error' }], error: { code: 'timeout' } });
    await expectAborted(requestIdOf(response));
    expect(await ledgerOf(service, response)).toMatchObject({ estimated: true, finishReason: 'error' });
  });

  it('does not count a complete answer’s time against the limit for the first token', async () => {
    service.provider.change({ first_token_ms: 600 });
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf('Complete'));

    expect(response.status).toBe(200);
  });
});
