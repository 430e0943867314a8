import { expect, it } from '@jest/globals';

import { createCloser } from '../../../../shared/lifecycle/closer.ts';

it('waits for one step before it begins the next', async () => {
  const events: string[] = [];
  const closer = createCloser(() => undefined);
  closer.defer('store', () => events.push('store'));
  closer.defer('server', async () => {
    await new Promise((resolve) => setImmediate(resolve));
    events.push('server');
  });

  await closer.close();

  expect(events).toEqual(['server', 'store']);
});

it('goes on past a step that fails and says which one it was', async () => {
  const closed: string[] = [];
  const failed: [string, unknown][] = [];
  const closer = createCloser((name, error) => failed.push([name, error]));
  const fault = new Error('gone');
  closer.defer('first', () => closed.push('first'));
  closer.defer('rejects', () => Promise.reject(fault));
  closer.defer('throws', () => {
    throw fault;
  });

  await closer.close();

  expect(closed).toEqual(['first']);
  expect(failed).toEqual([
    ['throws', fault],
    ['rejects', fault],
  ]);
});

it('goes on past a step that hangs', async () => {
  const closed: string[] = [];
  const failed: string[] = [];
  const closer = createCloser((name) => failed.push(name));
  closer.defer('store', () => closed.push('store'));
  closer.defer('hangs', () => new Promise(() => undefined), { limitMs: 1 });

  await closer.close();

  expect([failed, closed]).toEqual([['hangs'], ['store']]);
});

it('closes each thing once, however often it is told to close', async () => {
  let count = 0;
  const closer = createCloser(() => undefined);
  closer.defer('store', async () => {
    await new Promise((resolve) => setImmediate(resolve));
    count += 1;
  });

  await Promise.all([closer.close(), closer.close()]);
  await closer.close();

  expect(count).toBe(1);
});

it('closes what was opened while it was closing', async () => {
  const closed: string[] = [];
  const closer = createCloser(() => undefined);
  closer.defer('store', () => closed.push('store'));
  closer.defer('server', () => {
    closer.defer('late', () => closed.push('late'));
  });

  await closer.close();

  expect(closed).toEqual(['late', 'store']);
});
