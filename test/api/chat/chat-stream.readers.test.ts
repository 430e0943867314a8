import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, waitFor } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import type { TestService } from '../../support/service.ts';
import { openStream } from '../../support/stream-client.ts';
import { useService } from '../../support/use-service.ts';

const service = useService();
afterEach(() => {
  service.provider.restore();
});

/** Opens the stream once more and leaves it unread; resolves with the head. */
async function openReader({ url }: TestService, key: string, requestId: string) {
  const controller = new AbortController();
  const response = await fetch(`${url}/platform/v1/chat/stream/${requestId}`, {
    headers: { Authorization: `Bearer ${key}` },
    signal: controller.signal,
  });
  return {
    status: response.status,
    leave: () => {
      controller.abort();
    },
  };
}

describe('the readers of a request', () => {
  it('are at most four beside those who sent it; when one leaves the next may come', async () => {
    service.provider.change({ chunks: 60, chunk_ms: 50 });
    const { key } = await service.startTenant();
    const stream = await openStream(service.url, key, chatOf('Tell me a long story'));
    const requestId = stream.requestId;
    const readers = await Promise.all(Array.from({ length: 4 }, () => openReader(service, key, requestId)));
    expect(readers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);

    const fifth = () => request(service.app).get(`/platform/v1/chat/stream/${requestId}`).auth(key, { type: 'bearer' });
    const refused = refusalOf(await fifth());

    expect(refused).toMatchObject({ status: 429, code: 'rpm_exceeded', retryAfter: 5 });
    expect(refused.message).toContain('4 readers of one request');
    const stranger = await service.startTenant();
    expect((await openReader(service, stranger.key, requestId)).status).toBe(404);
    readers[0]?.leave();
    const next = await waitFor(async () => {
      const reader = await openReader(service, key, requestId);
      return reader.status === 200 ? reader : undefined;
    }, 'a place');
    for (const reader of [...readers, next]) reader.leave();
    stream.leave();
  });

  it('are not those who ask for the head alone: they have it at once', async () => {
    service.provider.change({ chunks: 60, chunk_ms: 50 });
    const { key } = await service.startTenant();
    const stream = await openStream(service.url, key, chatOf('Tell me a long story'));
    const requestId = stream.requestId;

    const head = await fetch(`${service.url}/platform/v1/chat/stream/${requestId}`, {
      method: 'HEAD',
      headers: { Authorization: `Bearer ${key}` },
    });

    expect(stream.text()).not.toContain('[DONE]');
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
    stream.leave();
  });
});
