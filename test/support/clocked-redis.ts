import type { RedisClient } from '../../shared/redis/connection.ts';

type Send = (text: string, ...call: (string | number)[]) => Promise<unknown>;

/** A client whose scripts read their time from a key: tests say what time it is. */
export function clockedRedis(client: RedisClient, clock: string): RedisClient {
  const texts = new Map<string, string>();
  const send: Send = (text, ...call) => {
    const changed =
      texts.get(text) ?? text.replaceAll("redis.call('TIME')", `redis.call('HMGET', '${clock}', 's', 'us')`);
    texts.set(text, changed);
    return client.eval(changed, ...(call as [number]));
  };
  // So that scripts are always sent as text, which is changed on its way.
  const unknown: Send = () => Promise.reject(new Error('NOSCRIPT'));
  return new Proxy(client, {
    get(target, name) {
      if (name === 'eval') return send;
      if (name === 'evalsha') return unknown;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
    getPrototypeOf: () => Object.prototype,
  });
}

const PASS = `
redis.call('HSET', KEYS[1], 's', ARGV[1], 'us', ARGV[2])
local passed = ARGV[3] + 0
for index = 2, passed > 0 and #KEYS or 1 do
  local left = redis.call('PTTL', KEYS[index])
  if left >= 0 then redis.call('PEXPIRE', KEYS[index], math.max(0, left - passed)) end
end
`;

/** Sets the time, and lets those keys expire that would have by then. */
export async function setClock(
  client: RedisClient,
  clock: string,
  { now, passedMs }: { now: number; passedMs: number },
  keys: readonly string[],
): Promise<void> {
  const [seconds, micros] = [Math.floor(now / 1_000), (now % 1_000) * 1_000];
  await client.eval(PASS, keys.length + 1, clock, ...keys, seconds, micros, passedMs);
}
