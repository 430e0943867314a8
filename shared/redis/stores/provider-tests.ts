/**
 * Calls a provider once for an operator who asks whether it works. Only workers have the key and a way to it, so the
 * ingress sends a message; the first worker to claim the test calls, and leaves the result under a key.
 */
import { setTimeout as pause } from 'node:timers/promises';

import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { subscribe } from '../connection.ts';
import { inTime } from '../time-limits.ts';

/** Ids and names only, no key and no text. */
export interface ProviderTest {
  id: string;
  provider: string;
  model: string;
}

export interface ProviderTestResult {
  ok: boolean;
  /** Null: the provider gave no answer. */
  status: number | null;
  ms: number;
  /** The provider's own name for it. */
  model: string | null;
  /** A sentence for the operator. */
  message: string;
}

export const TEST_MS = 30_000;
/** By then a living worker has claimed the test. */
const CLAIMED_MS = 3_000;
const KEPT_MS = 2 * TEST_MS;
const LOOK_MS = 50;
const CLAIMED = '';

export type ProviderTests = ReturnType<typeof createProviderTests>;

export function createProviderTests(client: RedisClient, { providerTests: keys }: Keyspace) {
  return {
    /** Undefined: no worker has claimed the test, or its worker has died. */
    async run(test: ProviderTest): Promise<ProviderTestResult | undefined> {
      const message = JSON.stringify(test);
      await inTime(client.isCluster ? client.spublish(keys.channel, message) : client.publish(keys.channel, message));
      const since = performance.now();
      for (let untilMs = CLAIMED_MS; performance.now() - since < untilMs;) {
        await pause(LOOK_MS);
        const found = await inTime(client.get(keys.result(test.id)));
        if (found === CLAIMED) untilMs = CLAIMED_MS + TEST_MS;
        // Written by `serveProviderTests` only.
        else if (found !== null) return JSON.parse(found) as ProviderTestResult;
      }
      return undefined;
    },
  };
}

/** `subscriber` is for pub/sub only. Resolves once it listens. */
export async function serveProviderTests(
  { redis, subscriber, keyspace }: { redis: RedisClient; subscriber: RedisClient; keyspace: Keyspace },
  run: (test: ProviderTest) => Promise<ProviderTestResult>,
  onError: (error: unknown) => void,
): Promise<void> {
  const { channel, result } = keyspace.providerTests;
  async function answer(test: ProviderTest): Promise<void> {
    if ((await redis.set(result(test.id), CLAIMED, 'PX', KEPT_MS, 'NX')) === null) return;
    await redis.set(result(test.id), JSON.stringify(await run(test)), 'PX', KEPT_MS);
  }
  await subscribe(subscriber, channel, (message) => {
    answer(JSON.parse(message) as ProviderTest).catch(onError);
  });
}
