import { expect, it } from '@jest/globals';

import { createKeyspace } from '../../../../shared/redis/keyspace.ts';
import type { ShardKeys } from '../../../../shared/redis/keyspace.ts';

/** Every key a shard has, each made with one argument as long as it takes one. */
function allKeys(keys: ShardKeys): string[] {
  return Object.values(keys).map((key: unknown) =>
    typeof key === 'function' ? String(Reflect.apply(key, undefined, ['a', 'b'])) : String(key),
  );
}

it('puts every key of a shard under one hash tag, so that one script may change any of them', () => {
  for (const key of allKeys(createKeyspace().shard(7))) expect(key).toMatch(/^\{chat-7\}/);
});

it('gives no two things of a shard the same key', () => {
  const keys = allKeys(createKeyspace().shard(0));

  expect(new Set(keys).size).toBe(keys.length);
});

it('keeps shards and namespaces apart', () => {
  const shards = [createKeyspace().shard(0), createKeyspace().shard(1), createKeyspace('test').shard(0)];
  const keys = shards.flatMap(allKeys);

  expect(new Set(keys).size).toBe(keys.length);
});

it('keeps the breakers of providers under one hash tag, apart from every shard’s', () => {
  const keyspace = createKeyspace();
  const keys = Object.values(keyspace.breakers);

  for (const key of keys) expect(key).toMatch(/^\{chat-breakers\}:/);
  expect(new Set([...keys, ...allKeys(keyspace.shard(0))]).size).toBe(keys.length + allKeys(keyspace.shard(0)).length);
});

/** The slot of a hash tag on a cluster: CRC16 (XMODEM) of what stands between the braces. */
function slotOf(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag.slice(1, -1))) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc % 16_384;
}

it('spreads four neighbouring shards over the three masters of a cluster, whatever the namespace', () => {
  for (const namespace of ['chat', 'test', 'a', 'another-one']) {
    const keyspace = createKeyspace(namespace);
    const masters = [0, 1, 2, 3].map((shard) => Math.floor((slotOf(keyspace.shard(shard).tag) * 3) / 16_384));
    expect(new Set(masters).size).toBe(3);
  }
});
