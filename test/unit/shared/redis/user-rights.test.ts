import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { describe, expect, it } from '@jest/globals';

import { createKeyspace } from '../../../../shared/redis/keyspace.ts';
import { callsOf } from '../../../../shared/redis/server-check.ts';

const checked = new Set(callsOf(createKeyspace(), false).map((call) => call.split(' ')[0]));

function namesIn(folder: string, pattern: string, call: RegExp): Set<string> {
  const files = globSync(pattern, { cwd: folder });
  expect(files.length).toBeGreaterThan(10);
  const found = files.flatMap((file) => [...readFileSync(`${folder}/${file}`, 'utf8').matchAll(call)]);
  return new Set(found.map(([, name = '']) => name.toUpperCase()));
}

describe('the rights that a Redis user is asked for', () => {
  it('have every command of our scripts', () => {
    const folder = fileURLToPath(new URL('../../../../shared/redis', import.meta.url));

    expect(
      [...namesIn(folder, '*/lua/*.lua', /redis\.p?call\('([A-Z]+)'/g)].filter((name) => !checked.has(name)),
    ).toEqual([]);
  });

  it('have every command of the scripts of BullMQ that touch jobs', () => {
    const folder = fileURLToPath(new URL('../../../../node_modules/bullmq/dist/esm/scripts', import.meta.url));

    expect(
      [...namesIn(folder, '*.js', /(?:rcall|redis\.call)\(\s*['"]([A-Za-z]+)['"]/g)].filter(
        (name) => !checked.has(name),
      ),
    ).toEqual(
      // Those of QueueEvents.
      ['XREAD'],
    );
  });
});
