import { describe, expect, it } from '@jest/globals';

import { waitUntil } from '../../support/chat.ts';
import { openRelayLab } from '../../support/relay-lab.ts';
import { useStreams } from '../../support/stream-server.ts';
import type { ServedStream } from '../../support/stream-server.ts';
import { useStarted } from '../../support/use-service.ts';

const PING_MS = 10;

describe('the head of a stream', () => {
  const serve = useStreams(() => relay);
  const relay = useStarted('relay', openRelayLab);

  const pings = (stream: ServedStream, count: number) =>
    waitUntil(() => stream.text().split(': ping\n').length > count, 'pings');

  it('waits for the queue, which may still refuse the request, and then comes at once', async () => {
    const request = await relay.start();
    const queued = Promise.withResolvers<undefined>();
    const stream = await serve(request.requestId, { pingMs: PING_MS, between: queued.promise });
    // Another client's pings show that there was time for some.
    await pings(await serve((await relay.start()).requestId, { pingMs: PING_MS }), 5);
    expect(stream.res.headersSent).toBe(false);

    queued.resolve(undefined);

    await pings(stream, 1);
  });

  it('ends with the typed timeout where nobody is left to end the request', async () => {
    const request = await relay.start();
    await request.append('Hello', ' there');
    const stream = await serve(request.requestId, { existing: true, timeoutMs: 300, marginMs: 200 });

    const text = await stream.ended;

    expect(text).toContain('"content":" there"');
    const last = text.slice(text.lastIndexOf('id: '));
    expect(last).toMatch(/^id: 3\n/);
    expect(last).toContain('"finish_reason":"error"');
    expect(last).toContain('"code":"timeout"');
    expect(text).not.toContain('[DONE]');
    // The connection ends as one that is whole: chunked encoding has its last chunk.
    expect(text.endsWith('0\r\n\r\n')).toBe(true);
  });
});
