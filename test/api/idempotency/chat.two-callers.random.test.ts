import { setTimeout as pause } from 'node:timers/promises';

import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { createChance } from '../../support/chance.ts';
import { chatOf, postChat, waitFor } from '../../support/chat.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { redisUrl, uniqueName } from '../../support/stores.ts';
import { useService, useStarted, useTenant } from '../../support/use-service.ts';

const ROUNDS = 25;
const KEYS_AT_ONCE = 5;
/** The share of Redis's answers that do not arrive. */
const LOSSES = 0.2;
const LATER_MS = 30;

/** docs/spec.md#accepted-requests. */
describe('two callers under one Idempotency-Key, through two ingresses of which one loses answers of Redis', () => {
  const namespace = uniqueName('two');
  const proxy = useStarted('proxy', () => openTcpProxy(redisUrl()));
  const service = useService({ namespace });
  const cutOff = useService(() => ({ namespace, isSetUp: true, workers: 0, env: { REDIS_URL: proxy.url } }));
  const tenant = useTenant(service, { credits: 1_000_000 });

  /** Of all that was promised: id and key. */
  async function play(seed: number): Promise<Map<string, string>> {
    const chance = createChance(seed);
    const promised = new Map<string, string>();
    async function call(key: string, isAsync: boolean, app: typeof service.app): Promise<void> {
      await pause(chance.below(LATER_MS));
      const asked = postChat(app, tenant.key, chatOf(key)).set('Idempotency-Key', key);
      const { status, body } = await (isAsync ? asked.set('Prefer', 'respond-async') : asked);
      if (status === 200 || status === 202) promised.set(String(body.id), key);
      else expect([409, 503]).toContain(status);
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      proxy.cutReplies(() => chance.is(LOSSES));
      const keys = Array.from({ length: KEYS_AT_ONCE }, (_, index) => `${seed}-${round}-${index}`);
      await Promise.all(
        keys.flatMap((key) => {
          const first = call(key, true, chance.is(0.5) ? service.app : cutOff.app);
          return [first, call(key, chance.is(0.5), cutOff.app), call(key, chance.is(0.5), service.app)];
        }),
      );
    }
    proxy.cutReplies(undefined);
    return promised;
  }

  it.each([1, 2])(
    'ends whatever it has said yes to, after one call of the provider (seed %i)',
    async (seed) => {
      const promised = await play(seed);

      for (const [id] of promised) {
        const status = await waitFor(async () => {
          const found = await request(service.app).get(`/platform/v1/chat/${id}`).auth(tenant.key, { type: 'bearer' });
          return found.body.status === 'queued' || found.body.status === 'in_progress' ? undefined : found.body.status;
        }, `the end of ${id}`);
        expect([id, status]).toEqual([id, 'completed']);
      }
      expect(new Set(promised.values()).size).toBe(promised.size);
      expect(promised.size).toBeGreaterThan((ROUNDS * KEYS_AT_ONCE) / 2);
      for (const [id] of promised) expect([id, service.provider.request(id)?.calls]).toEqual([id, 1]);
    },
    120_000,
  );
});
