import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';

import { createSupervisor } from '../../../../scripts/harness/supervisor.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

it('waits for a process as long as that takes to end, and stops what was started before it only then', async () => {
  const stopped: string[] = [];
  const log: string[] = [];
  const supervisor = createSupervisor((line) => log.push(line));
  const worker = Promise.withResolvers<undefined>();
  const exited = new Promise<string>(() => undefined);
  const kill = () => undefined;
  supervisor.adopt('MongoDB', {
    exited,
    kill,
    stop: () => Promise.resolve(stopped.push('MongoDB')).then(() => undefined),
  });
  supervisor.adopt('worker', { exited, kill, stop: () => worker.promise.then(() => void stopped.push('worker')) });

  const closing = supervisor.close();
  await jest.advanceTimersByTimeAsync(600_000);
  expect(stopped).toEqual([]);

  worker.resolve(undefined);
  await closing;
  expect(stopped).toEqual(['worker', 'MongoDB']);
  expect(log).toEqual([]);
});
