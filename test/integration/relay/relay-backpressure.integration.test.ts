import { describe, expect, it } from '@jest/globals';
import type { Response } from 'express';

import { waitUntil } from '../../support/chat.ts';
import { openRelayLab } from '../../support/relay-lab.ts';
import { useStreams } from '../../support/stream-server.ts';
import { useStarted } from '../../support/use-service.ts';

const MEGABYTE = 1024 * 1024;

describe('a client that does not read', () => {
  const serve = useStreams(() => relay);
  const relay = useStarted('relay', openRelayLab);

  it('makes the ingress keep no more than its socket takes, and misses nothing when it reads on', async () => {
    const request = await relay.start();
    const { res, socket, ended } = await serve(request.requestId, { lazy: true });
    let mostKept = 0;

    for (let entry = 0; entry < 120; entry += 1) {
      await request.append('x'.repeat(100_000));
      mostKept = Math.max(mostKept, res.writableLength);
    }
    await request.finish();
    await waitUntil(() => res.writableNeedDrain, 'the back-pressure');
    mostKept = Math.max(mostKept, res.writableLength);
    expect(mostKept).toBeLessThan(MEGABYTE);

    socket.resume();
    const text = await ended;
    const ids = text.match(/^id: \d+$/gm) ?? [];
    expect(ids).toEqual(Array.from({ length: 122 }, (_, index) => `id: ${index + 1}`));
    expect(text.match(/x{100000}/g)).toHaveLength(120);
  });

  it('gets no pings on top of what it has not read', async () => {
    const request = await relay.start();
    const { res } = await serve(request.requestId, { lazy: true, pingMs: 5 });
    await writeUntilBlocked(request, res);
    const kept = res.writableLength;

    // A client that reads has several in the same time.
    const other = await serve((await relay.start()).requestId, { pingMs: 5 });
    await waitUntil(() => other.text().split(': ping').length > 6, 'its pings');

    expect(res.writableLength).toBe(kept);
  });

  it('is dropped when it has not read on for the drain time', async () => {
    const request = await relay.start();
    const { res } = await serve(request.requestId, { lazy: true, drainMs: 200 });

    await writeUntilBlocked(request, res);

    await waitUntil(() => res.destroyed, 'the connection to be dropped');
    await waitUntil(() => relay.hub.size() === 0, 'its reader to be closed');
  });

  it('is dropped in the same way when it is only the end that it does not read', async () => {
    const request = await relay.start();
    const { res } = await serve(request.requestId, { lazy: true, drainMs: 200 });

    await request.finish('x'.repeat(20 * MEGABYTE));

    await waitUntil(() => res.destroyed, 'the connection to be dropped');
  });
});

async function writeUntilBlocked(request: { append(text: string): Promise<void> }, res: Response): Promise<void> {
  await waitUntil(async () => {
    await request.append('x'.repeat(500_000));
    // On a busy machine it may have been dropped between two looks.
    return res.writableNeedDrain || res.destroyed;
  }, 'the socket to be full');
}
