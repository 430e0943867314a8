import { expect, it } from '@jest/globals';

import { groupWrites } from '../../../../../shared/mongo/requests/request-intents.ts';

function lab(rowsMax: number) {
  const writes: { rows: readonly number[]; end: (error?: Error) => void }[] = [];
  const write = groupWrites<number>(
    (rows) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error) => {
          if (error === undefined) resolve();
          else reject(error);
        };
        writes.push({ rows, end });
      }),
    rowsMax,
  );
  return { writes, write };
}

it('writes one alone at once, and together what comes meanwhile', async () => {
  const { writes, write } = lab(2);
  const all = [1, 2, 3, 4].map(write);
  expect(writes.map(({ rows }) => rows)).toEqual([[1]]);

  for (let index = 0; index < 3; index += 1) {
    writes[index]?.end();
    await all[index === 0 ? 0 : index * 2 - 1];
    await Promise.resolve();
  }

  await Promise.all(all);
  expect(writes.map(({ rows }) => rows)).toEqual([[1], [2, 3], [4]]);
});

it('fails whatever waits behind a write that fails, and goes on with the next', async () => {
  const { writes, write } = lab(10);
  const both = Promise.allSettled([write(1), write(2)]);
  writes[0]?.end(new Error('away'));
  expect((await both).map(({ status }) => status)).toEqual(['rejected', 'rejected']);

  const next = write(3);
  writes[1]?.end();
  await next;

  expect(writes.map(({ rows }) => rows)).toEqual([[1], [3]]);
});
