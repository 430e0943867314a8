import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import { createLogger } from '../../../../shared/logging/logger.ts';

class Away extends Error {}

describe('a store that is away', () => {
  let lines: Record<string, unknown>[];
  let answers: boolean;
  const write = (text: string) => {
    for (const line of text.trimEnd().split('\n')) lines.push(JSON.parse(line) as Record<string, unknown>);
  };
  const ping = () => (answers ? Promise.resolve() : Promise.reject(new Away('no answer')));
  const messages = () => lines.map(({ message }) => message);
  function open(level = 'info') {
    const log = createLogger('test', level, write);
    log.watchStore({ name: 'Redis', isFault: (error) => error instanceof Away, ping });
    return log;
  }
  beforeEach(() => {
    lines = [];
    answers = false;
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('has one line when it goes, and one with the counts when it is back', async () => {
    const log = open();

    for (let call = 0; call < 50; call += 1)
      log.warn('A request was answered 503.', { status: 503, error: new Error('outer', { cause: new Away('gone') }) });
    log.warn('A lease could not be renewed.', { error: new Away('gone') });
    await jest.advanceTimersByTimeAsync(5_000);
    expect(messages()).toEqual(['Redis does not answer.']);
    answers = true;
    await jest.advanceTimersByTimeAsync(1_020);

    expect(messages()).toEqual(['Redis does not answer.', 'Redis answers again.']);
    expect(lines[1]).toMatchObject({ level: 'info', count: 51, refused: 50, durationMs: 6_000 });
  });

  it('stays away while it answers and calls fail', async () => {
    const log = open();
    answers = true;

    for (let second = 0; second < 10; second += 1) {
      log.warn('A request was answered 503.', { status: 503, error: new Away('OOM') });
      await jest.advanceTimersByTimeAsync(900);
    }

    expect(messages()).toEqual(['Redis does not answer.']);
  });

  it('takes no line from anything else, and none at all of errors', async () => {
    const log = open();

    log.warn('Redis reported an error.', { error: new Away('gone') });
    log.warn('A webhook was disabled.');
    log.warn('A provider failed.', { error: new Error('500') });
    log.error('The audit log lacks a line.', { error: new Away('gone') });

    expect(messages().slice(1)).toEqual([
      'A webhook was disabled.',
      'A provider failed.',
      'The audit log lacks a line.',
    ]);
    await jest.advanceTimersByTimeAsync(0);
  });

  it('has every line with its stack at the level debug', () => {
    const log = open('debug');

    log.warn('Redis reported an error.', { error: new Away('gone') });
    jest.advanceTimersByTime(20);

    expect(messages()).toEqual(['Redis does not answer.', 'Redis reported an error.']);
    expect(lines[1]).toMatchObject({ level: 'debug', error: expect.stringContaining('    at ') });
  });
});
