import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from '@jest/globals';
import { createConnection } from 'mongoose';

import { createModels } from '../../../shared/mongo/catalogue.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const page = (name: string) => readFileSync(join(ROOT, 'docs', 'architecture', name), 'utf8');

describe('docs/architecture/collections.md', () => {
  const collections = Object.values(createModels(createConnection())).map(({ collection }) => collection.name);

  it.each(collections)('describes the collection %s', (name) => {
    expect(page('collections.md')).toContain(`\`${name}\``);
  });
});

/** Of keys with ids the part before them; those of BullMQ begin with the queue's name. */
function shardKeyNames(): string[] {
  const { tag, ...keys } = createKeyspace().shard(0);
  const names = Object.values(keys).map((key) => (typeof key === 'string' ? key : key('<', '<')));
  return names.map((name) => (name.slice(tag.length + 1).split('<')[0] ?? '') || '<queue>:');
}

/** The names that `defineScript` and `defineTimedScript` are called with. */
function scriptNames(): string[] {
  const folder = join(ROOT, 'shared', 'redis');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const calls = files.flatMap((file) => [
    ...readFileSync(join(folder, file), 'utf8').matchAll(/\bdefine(?:Timed)?Script\(\w+, '([a-z-]+)'/g),
  ]);
  return [...new Set(calls.map(([, name = '']) => name))];
}

describe('docs/architecture/redis-keys.md', () => {
  it.each([...new Set(shardKeyNames())])('describes the keys %s', (name) => {
    expect(page('redis-keys.md')).toContain(`\`${name}`);
  });

  it.each(scriptNames())('says what the script %s guards', (name) => {
    expect(page('redis-keys.md')).toMatch(new RegExp(`^\\| [^|]*\`${name}\``, 'm'));
  });
});
