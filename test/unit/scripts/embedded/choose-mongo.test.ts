import { describe, expect, it } from '@jest/globals';

import { chooseMongo } from '../../../../scripts/embedded/choose-mongo.ts';
import type { MongoFinder, MongoKind } from '../../../../scripts/embedded/choose-mongo.ts';

const KINDS: readonly MongoKind[] = ['mongod', 'mongodb-memory-server', 'secantus-py', 'secantus-rs'];

/** Chooses on a machine where only `available` can be run, and notes what was tried. */
async function choose(available: readonly MongoKind[], { preferFast = false, data = [] as readonly MongoKind[] } = {}) {
  const tried: MongoKind[] = [];
  const lines: string[] = [];
  const finderOf =
    (kind: MongoKind): MongoFinder =>
    () => {
      tried.push(kind);
      return Promise.resolve(
        available.includes(kind) ? { command: `/bin/${kind}`, args: [] } : { reason: `${kind} is missing` },
      );
    };
  const finders = Object.fromEntries(KINDS.map((kind) => [kind, finderOf(kind)])) as Record<MongoKind, MongoFinder>;
  const choice = await chooseMongo({
    log: (line) => lines.push(line),
    preferFast,
    hasData: (kind) => Promise.resolve(data.includes(kind)),
    finders,
  });
  return { choice, tried, lines };
}

describe('the choice of the MongoDB server', () => {
  it('takes mongod from the PATH before anything is downloaded or installed', async () => {
    const { choice, tried } = await choose(KINDS);
    expect(choice).toEqual({ kind: 'mongod', command: '/bin/mongod', args: [] });
    expect(tried).toEqual(['mongod']);
  });

  it('tries the official binary, then SecantusDB, and logs why each was passed over', async () => {
    const { choice, tried, lines } = await choose(['secantus-py', 'secantus-rs']);
    expect(choice.kind).toBe('secantus-py');
    expect(tried).toEqual(['mongod', 'mongodb-memory-server', 'secantus-py']);
    expect(lines).toHaveLength(3);
    expect(lines[0]).toContain('mongod is missing');
    expect(lines[1]).toContain('mongodb-memory-server is missing');
  });

  it('takes the Rust build only where speed is asked for, and then before mongod', async () => {
    expect((await choose(KINDS, { preferFast: true })).choice.kind).toBe('secantus-rs');
    expect((await choose(['mongod'], { preferFast: true })).choice.kind).toBe('mongod');
  });

  it('stays with the server whose data is there when a better one becomes available', async () => {
    const { choice } = await choose(KINDS, { data: ['secantus-py'] });
    expect(choice.kind).toBe('secantus-py');
  });

  it('goes on in the usual order when the server of the data is gone', async () => {
    const { choice, tried } = await choose(['mongod'], { data: ['secantus-py'] });
    expect(choice.kind).toBe('mongod');
    expect(tried).toEqual(['secantus-py', 'mongod']);
  });

  it('says every reason and what to do when nothing can be run', async () => {
    await expect(choose([])).rejects.toThrow(
      /mongod is missing; mongodb-memory-server is missing; secantus-py is missing.*MONGODB_URI/,
    );
  });
});
