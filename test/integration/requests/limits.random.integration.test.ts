import { afterAll, beforeAll, expect, it } from '@jest/globals';

import { createChance } from '../../support/chance.ts';
import { createAccountStore } from '../../../shared/redis/stores/account-store.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { createAdmissionStore } from '../../../shared/requests/admission-store.ts';
import type { Admission } from '../../../shared/requests/admission-store.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import * as model from '../../model/limits.ts';
import type { ModelKey, ModelRequest } from '../../model/limits.ts';
import { clockedRedis, setClock } from '../../support/clocked-redis.ts';
import { endingOf, FAILED, labRequest, principalOf, RATE } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { openTestRedis, uniqueName } from '../../support/stores.ts';

const SHARD = 3;
const STEPS = 700;
const MEAN_UNKNOWN = 500;
const SETTINGS = { queueLimit: 10_000, requestTimeoutMs: 600_000, retentionMs: 60_000 };
/** What a call that waited as it was told may meet: no window refuses it. */
const PASSED = ['admitted', 'credits', 'joined', 'max_in_flight'];

const clients: RedisClient[] = [];
beforeAll(async () => {
  clients.push(await openTestRedis('worker'), await openTestRedis('worker'));
});
afterAll(async () => {
  for (const client of clients) await client.quit();
});

interface Open {
  request: LabRequest;
  key: ModelKey;
  at: number;
  estimate: number;
}

/** Keys of three tenants, the last of which has no credits, over real Redis and the model. Two ingresses admit. */
async function openWorld(seed: number) {
  const chance = createChance(seed);
  const namespace = uniqueName('lim');
  const clock = `${namespace}:clock`;
  const keyspace = createKeyspace(namespace);
  const keys = keyspace.shard(SHARD);
  const redis = clients[0] as RedisClient;
  let now = Date.now();
  const clocks = { at: () => now, learn: () => undefined };
  const clocked = clients.map((client) => clockedRedis(client, clock));
  const stores = clocked.map((client) => createAdmissionStore(client, keyspace, { ...SETTINGS, clocks }));
  const times = { leaseMs: 10_000, disconnectGraceMs: 30_000 };
  const requests = createRequestStore(clocked[0] as RedisClient, keyspace, times);
  const accounts = createAccountStore(redis, keyspace);

  const some = (most: number) => 1 + chance.below(most);
  const ceiling = (most: number) => (chance.is(0.3) ? null : some(most));
  const all: ModelKey[] = [];
  for (const isPoor of [false, false, true]) {
    const tenantId = newId('ten');
    const tenant = model.newTenant(isPoor);
    await accounts.publishBalance(SHARD, tenantId, { balanceMicro: isPoor ? 0 : 1e15, version: 1, tokensByMonth: {} });
    const ceilings = { rpm: ceiling(30), tpm: ceiling(1_500), inFlight: ceiling(12) };
    for (let each = 0; each < 2; each += 1) {
      const dailyRequests = chance.is(0.5) ? 20 + some(100) : 0;
      const limits = { rpm: some(12), tpm: 100 + some(600), dailyRequests, chatRpm: some(15), streamRpm: some(15) };
      all.push(model.newKey(principalOf({ shard: SHARD, tenantId, limits, ceilings }), tenant));
    }
  }
  const windows = all.flatMap(({ principal: { keyId } }) => [
    ...[keys.keyRpm(keyId), keys.tokenWindow(keyId), keys.daily(keyId), keys.meanCompletion(keyId)],
    ...['chat', 'chat.stream', 'POST /x'].map((endpoint) => keys.throttle(endpoint, keyId)),
  ]);
  async function pass(ms: number): Promise<void> {
    now += ms;
    await setClock(redis, clock, { now, passedMs: ms }, windows);
  }
  await pass(0);
  return {
    ...{ chance, keys, redis, requests, all, pass },
    store: () => chance.pick(stores),
    now: () => now,
    async close() {
      const left = await redis.keys(`*${namespace}*`);
      if (left.length > 0) await redis.unlink(...left);
    },
  };
}

it.each([1, 2])(
  'limits, waits and headers are what plain lists of all requests say, at every step (%i)',
  async (seed) => {
    const world = await openWorld(seed);
    const { chance, keys, redis, requests, all, store, now } = world;
    const open: Open[] = [];
    const seen = new Map<string, number>();
    const where = { seed, step: 0, what: '' };
    const same = (found: unknown, expected: unknown) => {
      expect({ ...where, found }).toEqual({ ...where, found: expected });
    };
    const checkFigures = (key: ModelKey, found: Admission) => {
      const { requests: count, requestsResetMs, tokens, tokensResetMs } = found;
      same({ requests: count, requestsResetMs, tokens, tokensResetMs }, model.figuresOf(key, now()));
    };
    const anything = () => ({
      endpoint: chance.pick(['chat', 'chat.stream'] as const),
      isBatch: chance.is(0.15),
      promptTokens: 1 + chance.below(chance.is(0.1) ? 900 : 60),
      maxTokens: 1 + chance.below(60),
      name: chance.is(0.15) ? String(chance.below(3)) : undefined,
    });
    let refused: { key: ModelKey; asked: ReturnType<typeof anything>; waitMs: number } | undefined;

    async function admit(key: ModelKey, asked = anything()): Promise<string> {
      const { endpoint, isBatch, promptTokens, maxTokens, name } = asked;
      const { keyId, tenantId } = key.principal;
      const idempotency = name === undefined || isBatch ? undefined : { name: keyId + name, fingerprint: 'f' };
      const mean = Number((await redis.get(keys.meanCompletion(keyId))) ?? MEAN_UNKNOWN);
      const duration = Number((await redis.hget(keys.account(tenantId), 'duration')) ?? 0);
      const endsInMs = Math.ceil(Math.min(30_000, Math.max(1_000, duration / key.tenant.open.size)));
      const isJoined = idempotency !== undefined && (await redis.exists(keys.idempotency(idempotency.name))) === 1;
      const wanted: ModelRequest = {
        ...{ endpoint, isBatch, isJoined },
        estimate: promptTokens + Math.min(maxTokens, Math.ceil(mean)),
      };
      const waits = model.waitsOf(key, wanted, endsInMs, now());
      const longest = Math.max(0, ...waits.values());
      const isEither = key.tenant.isSuspended || isJoined;
      const expected = [...waits].filter(([, ms]) => isEither || ms === longest).map(([limit]) => limit);
      const requestId = newId('req');

      const found = await store().admit(
        {
          ...{ requestId, principal: key.principal, endpoint, idempotency, promptTokens, maxTokens },
          ...{ queue: isBatch ? 'batch' : 'interactive', channel: 'ingress', tier: 'mobius', onDisconnect: 'cancel' },
          ...{ rates: { promptMicro: RATE, completionMicro: RATE }, metadataJson: undefined, entityHash: undefined },
        },
        now(),
      );

      const { verdict } = found;
      seen.set(verdict, (seen.get(verdict) ?? 0) + 1);
      where.what = JSON.stringify({ asked, wanted, verdict, waits: [...waits] });
      same((waits.size === 0 ? [model.passedAs(key, wanted)] : expected).includes(verdict), true);
      if (waits.size > 0) same(found.retryAfterMs, isEither ? waits.get(verdict) : longest);
      if (verdict === 'admitted') {
        model.recordAdmitted(key, wanted, requestId, now());
        const request = labRequest(requestId, key.principal, found);
        if (!isBatch) open.push({ request, key, at: now(), estimate: wanted.estimate });
      } else if (waits.size === 0 && !isBatch) model.recordCounted(key, now());
      // Lines of batches have no headers.
      if (!isBatch) checkFigures(key, found);
      const isExact = waits.size > 0 && !isEither && !waits.has('max_in_flight') && !waits.has('daily');
      refused = isExact ? { key, asked, waitMs: Math.ceil(longest / 1_000) * 1_000 } : undefined;
      return verdict;
    }

    async function end(): Promise<void> {
      const [one] = open.splice(chance.below(open.length), 1);
      if (one === undefined) return;
      const { request, key, at, estimate } = one;
      const { requestId, principal } = request;
      let kept = 0;
      if (chance.is(0.3)) await store().void(requestId, principal);
      else {
        await redis.set(keys.body(requestId), JSON.stringify(request.envelope));
        await requests.claim(request.ref(1));
        const usage = { prompt: 1 + chance.below(60), completion: 1 + chance.below(200) };
        const isFailed = chance.is(0.3);
        if (!isFailed) kept = usage.prompt + usage.completion;
        await requests.finish(request.ref(1), 0, isFailed ? FAILED : endingOf(request, 'text', usage));
      }
      model.recordEnded(key, requestId, at, kept - estimate, now());
    }

    async function count(key: ModelKey): Promise<void> {
      const isTaken = chance.is(0.6);
      const own = chance.is(0.3) ? { name: 'POST /x', limit: 3, of: 'key' as const } : undefined;
      const { rpm, throttle } = model.countWaitsOf(key, own, now());
      const passed = key.tenant.isSuspended ? 'suspended' : 'admitted';
      const found = await store().count(newId('req'), key.principal, isTaken ? 'of tenant' : 'nothing', own);
      where.what = `count ${JSON.stringify({ own, rpm, throttle })}`;
      const verdict = rpm + throttle === 0 ? passed : throttle > rpm ? 'throttle' : 'rpm';
      same([found.verdict, found.retryAfterMs], [verdict, Math.max(rpm, throttle)]);
      if (rpm + throttle === 0 && isTaken) {
        key.log.push(now());
        if (own !== undefined) model.logOf(key, own.name).push(now());
      }
      checkFigures(key, found);
    }

    async function suspend({ tenant, principal }: ModelKey): Promise<void> {
      tenant.isSuspended = !tenant.isSuspended && chance.is(0.3);
      if (tenant.isSuspended) await redis.set(keys.blocked(principal.tenantId), '1');
      else await redis.del(keys.blocked(principal.tenantId));
    }

    /** Often to just before, at, or just behind the moment in which something leaves a window; now and then by hours. */
    function someTime(): number {
      const edges = all.flatMap((key) => model.edgesOf(key, now()));
      if (edges.length > 0 && chance.is(0.3)) return Math.max(0, chance.pick(edges) + chance.below(3) - 1 - now());
      if (chance.is(0.004)) return chance.below(30 * 60) * 60_000;
      return chance.pick([0, 0, 1, 130, 999, 1_000, 3_000, 12_000]);
    }

    for (; where.step < STEPS; where.step += 1) {
      if (refused !== undefined && chance.is(0.2)) {
        const { key, asked, waitMs } = refused;
        await world.pass(waitMs);
        same(PASSED.includes(await admit(key, asked)), true);
        continue;
      }
      await world.pass(someTime());
      refused = undefined;
      const key = chance.pick(all);
      const what = chance.below(100);
      if (what < 55) await admit(key);
      else if (what < 80) await end();
      else if (what < 98) await count(key);
      else await suspend(key);
    }

    for (const { log, principal } of all) expect(model.worstMinute(log)).toBeLessThanOrEqual(principal.limits.rpm);
    expect(seen.size).toBeGreaterThan(6);
    await world.close();
  },
  120_000,
);
