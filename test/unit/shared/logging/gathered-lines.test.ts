import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';

import { createLogger } from '../../../../shared/logging/logger.ts';

let writes: string[] = [];
const messagesOf = (lines = '') =>
  lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { message: string }).message);

beforeEach(() => {
  writes = [];
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const open = () => createLogger('test', 'info', (lines) => writes.push(lines));

it('writes the lines of 20 ms at once', () => {
  const log = open();

  log.info('one');
  log.info('two', { requestId: 'req_1' });
  expect(writes).toEqual([]);
  jest.advanceTimersByTime(20);

  expect(writes).toHaveLength(1);
  expect(messagesOf(writes[0])).toEqual(['one', 'two']);
  const line: unknown = JSON.parse(writes[0]?.split('\n')[1] ?? '');
  expect(line).toMatchObject({ level: 'info', process: 'test', requestId: 'req_1' });
});

it.each(['warn', 'error'] as const)('writes %s at once, behind what came before it', (level) => {
  const log = open();

  log.info('before');
  log[level]('now', { error: new Error('the fault') });

  expect(messagesOf(writes[0])).toEqual(['before', 'now']);
  expect(writes[0]).toContain('the fault');
});

it('writes what is left when the process ends', () => {
  const before = process.listeners('exit');
  const log = open();
  const [atExit] = process.listeners('exit').filter((listener) => !before.includes(listener));

  log.info('the last line');
  atExit?.(0);

  expect(messagesOf(writes[0])).toEqual(['the last line']);
});
