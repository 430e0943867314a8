import { EventEmitter } from 'node:events';

import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Response } from 'express';

import { openForwarder } from '../../../../api/relay/answer.ts';
import type { ForwardOptions } from '../../../../api/relay/answer.ts';
import type { RelayHub } from '../../../../api/relay/hub.ts';
import { LOST } from '../../../../shared/contracts/events.ts';
import type { StreamEntry, Terminal } from '../../../../shared/contracts/events.ts';
import type { QueuePlace } from '../../../../shared/requests/record-store.ts';

const HEAD = { requestId: 'req_1', created: 1, model: 'mobius' };
const STOP: Terminal = { finishReason: 'stop', usage: { promptTokens: 1, completionTokens: 1 } };

/** What the relay needs of a response whose client reads at once. */
class OpenResponse extends EventEmitter {
  headersSent = false;
  closed = false;
  socket = { writableLength: 0 };
  text = '';
  ended = false;
  /** Whether the client takes what is written. */
  takes = true;
  writeHead(): this {
    this.headersSent = true;
    return this;
  }
  write(text: string): boolean {
    if (this.ended) throw new Error('write after end');
    this.text += text;
    return this.takes;
  }
  end(text: string): void {
    this.write(text);
    this.ended = true;
  }
}

/** Forwards a stream whose entries the test hands on. */
function forward(options: Partial<ForwardOptions>) {
  const res = new OpenResponse();
  let hear: ((entry: StreamEntry) => void) | undefined;
  const reader = {
    close: () => undefined,
    confirm: () => undefined,
    abandon: () => undefined,
    pause: () => undefined,
    resume: () => undefined,
  };
  const hub: Pick<RelayHub, 'open'> = {
    open(_shard, _requestId, onEntry) {
      hear = onEntry;
      return reader;
    },
  };
  const forwarder = openForwarder(hub as RelayHub, res as unknown as Response, {
    shard: 0,
    requestId: 'req_1',
    timeoutMs: 60_000,
    ...options,
  });
  const forwarded = forwarder.forward(HEAD);
  return { res, forwarded, hear: (entry: StreamEntry) => hear?.(entry) };
}

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

describe('a place in line', () => {
  /** A forwarder whose place was asked for, and is known when the test says so. */
  async function askedForPlace() {
    const place = Promise.withResolvers<QueuePlace>();
    const opened = forward({ placeMs: 1_000, place: () => place.promise });
    await jest.advanceTimersByTimeAsync(1_000);
    return {
      ...opened,
      answer: async () => {
        place.resolve({ position: 5, waitMs: 18_000 });
        await jest.advanceTimersByTimeAsync(0);
      },
    };
  }

  it('is told while the client waits', async () => {
    const { res, answer } = await askedForPlace();

    await answer();

    expect(res.text).toBe(': queue position=5 wait=18\n');
  });

  it('is not told behind text, although it was asked for before', async () => {
    const { res, hear, answer } = await askedForPlace();
    hear({ lastSeq: 1, deltas: ['"Hi"'] });
    const { text } = res;

    await answer();

    expect(res.text).toBe(text);
  });

  it('is not told after the end', async () => {
    const { res, hear, forwarded, answer } = await askedForPlace();
    hear({ lastSeq: 2, deltas: [], terminal: STOP });
    await forwarded;

    await answer();

    expect(res.text).not.toContain('queue');
  });
});

describe('an error', () => {
  it('is an event for a client that reads on behind text, although nothing was written on this connection', async () => {
    const { res, forwarded, hear } = forward({ fromSeq: 4 });
    hear({ lastSeq: 4, deltas: [], terminal: LOST });

    await forwarded;

    expect(res.text).toMatch(/^id: 4\ndata: .*"finish_reason":"error"/);
  });
});

describe('a request without an end', () => {
  const times = { timeoutMs: 1_000, marginMs: 500, drainMs: 10_000 };
  const begun: StreamEntry = { lastSeq: 1, deltas: ['"Once"'] };

  it('waits for a client that still reads', async () => {
    const { res, hear, forwarded } = forward(times);
    res.takes = false;
    hear(begun);
    await jest.advanceTimersByTimeAsync(1_500);
    res.takes = true;
    res.emit('drain');
    hear({ lastSeq: 3, deltas: [], terminal: STOP });
    await forwarded;

    expect(res.text).toContain('"stop"');
    expect(res.text).not.toContain('timeout');
  });

  it('ends its stream behind what a slow client has read', async () => {
    const { res, hear } = forward(times);
    res.takes = false;
    hear(begun);
    await jest.advanceTimersByTimeAsync(1_500);
    res.takes = true;
    res.emit('drain');

    await jest.advanceTimersByTimeAsync(2 * times.drainMs);

    expect(res.text).toContain('"timeout"');
  });
});
