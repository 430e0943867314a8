import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';

import { describe, expect, it } from '@jest/globals';
import express from 'express';
import type { Response } from 'express';

import { openCollector, openForwarder } from '../../../api/relay/answer.ts';
import { waitUntil } from '../../support/chat.ts';
import { openRelayLab } from '../../support/relay-lab.ts';
import { SHARD } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

/** A response whose client closed its connection while the service was still looking at its key. */
async function responseWithoutClient(): Promise<Response> {
  const called = Promise.withResolvers<Response>();
  const app = express().get('/', (_req, res) => {
    called.resolve(res);
  });
  const server = createServer(app).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  // A TCP server that listens has such an address.
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: parley\r\n\r\n');
  const res = await called.promise;
  socket.destroy();
  await waitUntil(() => res.closed, 'the end of the connection');
  server.close();
  return res;
}

describe('a client that has gone before its relay is opened', () => {
  const relay = useStarted('relay', openRelayLab);

  it('reads no stream: its request is as one that nobody reads', async () => {
    const { requestId } = await relay.start();
    const res = await responseWithoutClient();

    const forwarder = openForwarder(relay.hub, res, { shard: SHARD, requestId, timeoutMs: 60_000 });

    expect(relay.hub.size()).toBe(0);
    await forwarder.forward({ requestId, created: 1, model: 'mobius' });
    const record = relay.lab.keys.record(requestId);
    await waitUntil(async () => {
      const until = await relay.lab.redis.hget(record, `reader:${relay.hub.channelOf(SHARD)}`);
      return Number(until) <= Date.now();
    }, 'the end of its reader’s lease');
  });

  it('a client that has gone before its relay is opened waits for no complete answer', async () => {
    const { requestId } = await relay.start();
    const res = await responseWithoutClient();

    openCollector(relay.hub, res, {
      shard: SHARD,
      requestId,
      timeoutMs: 60_000,
      stopping: new AbortController().signal,
    });

    expect(relay.hub.size()).toBe(0);
  });
});
