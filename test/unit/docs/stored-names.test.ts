import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from '@jest/globals';
import { createConnection } from 'mongoose';

import { createModels } from '../../../shared/mongo/administration/catalogue.ts';
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

describe('docs/architecture/redis-keys.md', () => {
  it.each([...new Set(shardKeyNames())])('describes the keys %s', (name) => {
    expect(page('redis-keys.md')).toContain(`\`${name}`);
  });
});

const LUA_FOLDERS = ['shared/requests/lua', 'shared/redis/stores/lua'];

/** The scripts that `defineScript` and `defineTimedScript` are called with, by name. */
function scripts(): [name: string, text: string][] {
  const shared = join(ROOT, 'shared');
  const files = readdirSync(shared, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const names = files.flatMap((file) =>
    Array.from(
      readFileSync(join(shared, file), 'utf8').matchAll(/\bdefine(?:Timed)?Script\(\w+, '([a-z-]+)'/g),
      ([, name = '']) => name,
    ),
  );
  return Array.from(new Set(names), (name) => {
    const paths = LUA_FOLDERS.map((folder) => join(ROOT, folder, `${name}.lua`));
    return [name, readFileSync(paths.find((path) => existsSync(path)) ?? '', 'utf8')];
  });
}

describe('the header of each Redis script', () => {
  it.each(scripts())('says what %s does, and with which keys and arguments', (_name, text) => {
    const header = /^(?:--.*\n)+/.exec(text)?.[0] ?? '';

    expect(header).toMatch(/^-- [A-Z][^.]{20,}\./);
    expect(header).toMatch(/\bKEYS\b/);
    if (text.includes('ARGV[')) expect(header).toMatch(/\bARGV\b/);
  });
});
