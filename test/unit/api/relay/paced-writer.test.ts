import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';

import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';

import { createPacedWriter } from '../../../../api/relay/paced-writer.ts';

const DRAIN_MS = 30_000;

/** What the writer needs of a response, with a client that reads when the test says so. */
class SlowResponse extends EventEmitter {
  destroyed = false;
  socket = { writableLength: 1 };
  unreadMs = 0;
  write = () => false;
  end = () => this;
  destroy = () => (this.destroyed = true);
  setTimeout(ms: number): void {
    this.unreadMs = ms;
  }
}

function startWriting() {
  const res = new SlowResponse();
  const calls: string[] = [];
  const writer = createPacedWriter(res as unknown as ServerResponse, DRAIN_MS, {
    onBlocked: () => calls.push('blocked'),
    onDrained: () => calls.push('drained'),
  });
  return { res, writer, calls };
}

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

it('a client that reads nothing for the drain time is dropped', () => {
  const { res, writer, calls } = startWriting();
  writer.write('text');
  expect(writer.isBlocked()).toBe(true);

  jest.advanceTimersByTime(DRAIN_MS - 1);
  expect(res.destroyed).toBe(false);
  jest.advanceTimersByTime(1);

  expect(res.destroyed).toBe(true);
  expect(calls).toEqual(['blocked']);
});

it('a client that has read is not dropped, however much was written while it had not', () => {
  const { res, writer, calls } = startWriting();
  for (let piece = 0; piece < 3; piece += 1) writer.write('text');

  res.emit('drain');
  jest.advanceTimersByTime(DRAIN_MS);

  expect(res.destroyed).toBe(false);
  expect(calls).toEqual(['blocked', 'drained']);
});

it('the end begins the time anew, which each read then does', () => {
  const { res, writer } = startWriting();
  writer.write('text');
  jest.advanceTimersByTime(DRAIN_MS - 1);

  writer.end('the end');
  jest.advanceTimersByTime(DRAIN_MS);

  expect(res.destroyed).toBe(false);
  expect(res.unreadMs).toBe(DRAIN_MS);
});
