import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import {
  chatOf,
  choiceOf,
  errorOf,
  expectUncharged,
  ledgerOf,
  parseSse,
  postChat,
  postStream,
  textOf,
} from '../../support/chat.ts';
import { openStream } from '../../support/stream-client.ts';
import { useService } from '../../support/use-service.ts';

/** Long enough that an error comes before the first ping, also on a busy machine. */
const PING_MS = 1_500;
const BETWEEN_TOKENS_MS = 300;

describe('a stream that fails', () => {
  const service = useService({ workers: 0, relayTimes: { pingMs: PING_MS }, silenceMs: BETWEEN_TOKENS_MS });
  beforeAll(async () => {
    await service.setProvider({ max_retries: 0, first_token_timeout_ms: 5_000 });
    await service.startWorker();
  });
  afterEach(async () => {
    service.provider.restore();
    await service.resetBreakers();
  });
  afterAll(() => {
    expect(service.log.errors()).toEqual([]);
  });

  describe('before its first event', () => {
    it.each([
      [500, 503, 'model_unavailable', 'overloaded_error'],
      [429, 503, 'model_unavailable', 'overloaded_error'],
      [401, 503, 'model_unavailable', 'overloaded_error'],
      [400, 400, 'invalid_request', 'invalid_request_error'],
    ])('because the provider answers %d has the HTTP status %d', async (given, status, code, type) => {
      service.provider.change({ fail: 'status', status: given });
      const { key } = await service.startTenant();

      const response = await postStream(service.app, key, chatOf('Hi'));

      expect(response.status).toBe(status);
      expect(response.headers['content-type']).toContain('application/json');
      expect(errorOf(response)).toMatchObject({ code, type });
      if (status === 503) expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
    });
  });

  describe('after a ping', () => {
    it('has sent the head with the first ping, and a ping at every interval until then', async () => {
      service.provider.change({ first_token_ms: 4_000, words: 5 });
      const { key } = await service.startTenant();

      const stream = await openStream(service.url, key, chatOf('Wait for it'));
      const atHead = stream.text();
      const text = await stream.end();

      expect(atHead).not.toContain('data:');
      const pings = text.slice(0, text.indexOf('id: 1')).match(/: ping\n/g) ?? [];
      // 4 s at an interval of 1.5 s; a busy machine takes longer, and then there are more.
      expect(pings.length).toBeGreaterThanOrEqual(2);
      expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    });

    it.each([
      ['resets the connection', { fail: 'reset', first_token_ms: 3_000 } as const, 'model_unavailable'],
      ['sends nothing', { fail: 'stall' } as const, 'timeout'],
    ])('ends with the typed error when the provider %s', async (_what, settings, code) => {
      service.provider.change(settings);
      const { key } = await service.startTenant();

      const stream = await openStream(service.url, key, chatOf('Wait in vain'));
      const text = await stream.end();

      expect(stream.status).toBe(200);
      const events = parseSse(text);
      expect(events).toHaveLength(1);
      expect(events[0]).toMatchObject({
        id: 1,
        chunk: {
          object: 'chat.completion.chunk',
          choices: [{ index: 0, delta: {}, finish_reason: 'error' }],
          usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
          error: { code, request_id: stream.headers['x-request-id'] },
        },
      });
      expect(text).not.toContain('[DONE]');
    });
  });

  describe('after its first text', () => {
    const TEXT = 'alpha beta gamma delta epsilon zeta eta theta iota kappa';

    it.each([
      ['truncate', 'model_unavailable', 'overloaded_error'],
      ['reset', 'model_unavailable', 'overloaded_error'],
      ['malformed', 'model_unavailable', 'overloaded_error'],
      ['stall', 'timeout', 'timeout_error'],
    ] as const)('through %s ends with the typed error, partial usage and no [DONE]', async (fail, code, type) => {
      service.provider.change({ text: TEXT, chunks: 10, fail, fail_after: 6, chunk_ms: 20 });
      const { key, tenantId } = await service.startTenant({ credits: 1_000 });

      const response = await postStream(service.app, key, chatOf('List letters', { metadata: { a: 1 } }));

      const events = parseSse(String(response.body));
      const last = events.at(-1);
      const received = textOf(events);
      expect(response.status).toBe(200);
      expect(received.length).toBeGreaterThan(5);
      expect(TEXT.startsWith(received)).toBe(true);
      expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
      expect(last?.chunk).toMatchObject({
        choices: [{ index: 0, delta: {}, finish_reason: 'error' }],
        usage: { completion_tokens: expect.any(Number) },
        metadata: { a: 1 },
        error: { code, type, message: expect.any(String), request_id: response.headers['x-request-id'] },
      });
      expect(choiceOf(last?.chunk).delta).toEqual({});

      const usage = last?.chunk?.['usage'] as Record<string, number>;
      expect(usage['completion_tokens']).toBeGreaterThan(0);
      const requestId = String(response.headers['x-request-id']);
      const entry = await ledgerOf(service, response);
      expect(entry).toMatchObject({
        tenantId,
        estimated: true,
        finishReason: 'error',
        promptTokens: usage['prompt_tokens'],
        completionTokens: usage['completion_tokens'],
        amountMicro: -1_000_000 * Number(usage['total_tokens']),
      });
      expect(service.provider.request(requestId)?.calls).toBe(1);
    });

    it('is no answer for the complete route: 503, and nothing is charged', async () => {
      service.provider.change({ text: TEXT, fail: 'truncate', fail_after: 6 });
      const { key, tenantId } = await service.startTenant({ credits: 1_000 });

      const response = await postChat(service.app, key, chatOf('List letters'));

      expect(response.status).toBe(503);
      expect(errorOf(response)).toMatchObject({ code: 'model_unavailable' });
      await expectUncharged(service, tenantId, 1_000);
    });
  });
});
