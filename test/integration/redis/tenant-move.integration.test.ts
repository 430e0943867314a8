import { describe, expect, it } from '@jest/globals';

import { openMoveTenant } from '../../../api/admin/tenants/move-tenant.ts';
import type { MoveTenant, MoveTenantDeps } from '../../../api/admin/tenants/move-tenant.ts';
import { createAccountRepository } from '../../../shared/mongo/accounts/account-repository.ts';
import { createBatchRepository } from '../../../shared/mongo/batches/batch-repository.ts';
import { createKeyRepository } from '../../../shared/mongo/tenants/key-repository.ts';
import { createTenantMoves } from '../../../shared/mongo/administration/tenant-moves.ts';
import { createTenantRepository } from '../../../shared/mongo/tenants/tenant-repository.ts';
import { createAccountStore } from '../../../shared/redis/stores/account-store.ts';
import { createAcceptanceClock } from '../../../shared/requests/record-store.ts';
import { createAccessFlags } from '../../../shared/redis/stores/access-flags.ts';
import { createMoveMarks, createTenantState } from '../../../shared/requests/tenant-move.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { chatOf, postChat, waitFor, waitUntil } from '../../support/chat.ts';
import { kindsOn, moveWhenIdle, shardOf } from '../../support/move-lab.ts';
import type { TestTenant } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useService } from '../../support/use-service.ts';

const service = useService({ env: { QUEUE_SHARDS: '2' } });

const TEST_MS = 120_000;
/** More than a process that moves may be silent for. */
const LATER_MS = 60_000;

type Deps = Omit<MoveTenantDeps, 'clock' | 'log'>;

function depsOf(): Deps {
  const { mongo, redis, keyspace } = service;
  return {
    tenants: createTenantRepository(mongo),
    keys: createKeyRepository(mongo),
    accounts: createAccountRepository(mongo),
    accountStore: createAccountStore(redis, keyspace),
    accessFlags: createAccessFlags(redis, keyspace),
    moves: createTenantMoves(mongo),
    marks: createMoveMarks(redis, keyspace),
    state: createTenantState(redis, keyspace),
    acceptanceClock: createAcceptanceClock(redis, keyspace),
  };
}

/** `around` runs each call to a store, by its name. */
type Around = <Result>(name: string, call: () => Promise<Result>) => Promise<Result>;

function wrap<Part extends object>(part: Part, partName: string, around: Around): Part {
  return new Proxy(part, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) =>
        around(`${partName}.${String(name)}`, () => Promise.resolve(Reflect.apply(method, target, args) as unknown));
    },
  });
}

function openMover(around: Around, aheadMs = 0): MoveTenant {
  const parts = Object.entries(depsOf()).map(([name, part]) => [name, wrap(part as object, name, around)]);
  // Each is what it was, but for what runs around its calls.
  const stores = Object.fromEntries(parts) as Deps;
  return openMoveTenant(service, { ...stores, clock: { now: () => Date.now() + aheadMs }, log: service.log });
}

const plainly: Around = (_name, call) => call();

class Lost extends Error {}

/** A process that dies before one of its calls to the stores. */
function dyingBefore(place: number): Around {
  let calls = 0;
  return async (_name, call) => {
    calls += 1;
    if (calls >= place) throw new Lost();
    return call();
  };
}

/** A process that lives on, and gets no answer to one of its calls, which happens all the same. */
function unansweredAt(place: number): Around {
  let calls = 0;
  return async (_name, call) => {
    calls += 1;
    const isLost = calls === place;
    const result = await call();
    if (isLost) throw new Lost();
    return result;
  };
}

async function idle({ tenantId }: TestTenant): Promise<void> {
  const { state, moves } = depsOf();
  await waitUntil(async () => {
    const work = await state.openWork(await shardOf(service, tenantId), tenantId);
    const tasks = await moves.openTasks(tenantId);
    return work.requests + work.unsettled + tasks.batches + tasks.intents === 0;
  }, 'the tenant to be idle');
}

async function chat({ key }: TestTenant): Promise<string> {
  const answer = await waitFor(async () => {
    const each = await postChat(service.app, key, chatOf('Hi'));
    return each.status === 503 ? undefined : each;
  }, 'an answer');
  expect(answer.status).toBe(200);
  return String(answer.body.id);
}

/** Balance as it is told, and as the ledger has it. */
async function balances({ tenantId }: TestTenant): Promise<{ told: number; sum: number; held: number }> {
  const { body } = await service.admin('get', `/tenants/${tenantId}`);
  const entries = await service.models.ledger.find({ tenantId }).lean();
  return { told: body.balance, held: body.held, sum: entries.reduce((sum, each) => sum + each.amountMicro, 0) / 1e6 };
}

describe.each([
  ['a process that dies', dyingBefore],
  ['a process that gets no answer', unansweredAt],
])('%s at a step of a move', (_what, failingAt) => {
  it(
    'leaves a tenant that another one brings to its shard, with its money, limits and answers',
    async () => {
      const tenant = await service.startTenant({ key: { daily_requests: 1_000 } });
      const { tenantId, keyId, key } = tenant;
      const requestId = await chat(tenant);
      await idle(tenant);
      let hasFailed = true;
      for (let place = 1; hasFailed; place += 1) {
        const to = 1 - (await shardOf(service, tenantId));
        hasFailed = false;
        await openMover(failingAt(place))
          .move(tenantId, to)
          .catch((error: unknown) => {
            if (!(error instanceof Lost)) throw error;
            hasFailed = true;
          });
        const moved = await openMover(plainly, LATER_MS).move(tenantId, to);

        expect(moved.shard).toBe(to);
        expect(moved.move).toBeUndefined();
        expect(await service.redis.hget(service.keyspace.shard(to).daily(keyId), 'total')).toBe('1');
        expect(await kindsOn(service, 1 - to, [tenantId, keyId])).toEqual(['blocked']);
        expect((await apiOf(service, key)('get', `/chat/${requestId}`)).body).toMatchObject({ status: 'completed' });
      }
      await chat(tenant);
      await idle(tenant);
      const { told, sum, held } = await balances(tenant);
      expect({ told, held }).toEqual({ told: sum, held: 0 });
    },
    TEST_MS,
  );
});

it('does nothing any more once another process has taken over', async () => {
  const tenant = await service.startTenant();
  const { tenantId, key } = tenant;
  await chat(tenant);
  await idle(tenant);
  const to = 1 - (await shardOf(service, tenantId));
  let isTaken = false;
  const slow = openMover(async (name, call) => {
    // It hangs for long before it copies, and goes on when the tenant has been moved and is served again.
    if (name === 'state.copy' && !isTaken) {
      isTaken = true;
      await openMover(plainly, LATER_MS).move(tenantId, to);
      await chat(tenant);
    }
    return call();
  });

  await expect(slow.move(tenantId, to)).rejects.toMatchObject({ code: 'conflict' });

  expect(await shardOf(service, tenantId)).toBe(to);
  expect((await postChat(service.app, key, chatOf('Hi'))).headers['x-ratelimit-remaining-requests']).toBe('99997');
});

it('takes nothing away from a tenant that has come back meanwhile', async () => {
  const tenant = await service.startTenant({ key: { daily_requests: 1_000 } });
  const { tenantId, keyId } = tenant;
  await chat(tenant);
  await idle(tenant);
  const from = await shardOf(service, tenantId);
  let hasHung = false;
  const slow = openMover(async (name, call) => {
    // It hangs once the tenant has arrived, while another one ends the move and the tenant is moved back.
    if (name === 'accountStore.publishBalance' && !hasHung) {
      hasHung = true;
      await openMover(plainly, LATER_MS).move(tenantId, 1 - from);
      await openMover(plainly, LATER_MS).move(tenantId, from);
      await chat(tenant);
    }
    return call();
  });

  await expect(slow.move(tenantId, 1 - from)).rejects.toMatchObject({ code: 'conflict' });

  const keys = service.keyspace.shard(from);
  expect(await shardOf(service, tenantId)).toBe(from);
  expect(await service.redis.exists(keys.blocked(tenantId))).toBe(0);
  expect(await service.redis.exists(keys.account(tenantId))).toBe(1);
  expect(await service.redis.hget(keys.daily(keyId), 'total')).toBe('2');
});

it('loses neither credits nor what a key has lost that come while a tenant is moved', async () => {
  const tenant = await service.startTenant({ credits: 100 });
  const { id: narrowed } = await makeKey(apiOf(service, tenant.key));
  const { tenantId, keyId } = tenant;
  const to = 1 - (await shardOf(service, tenantId));
  await waitFor(() => service.redis.exists(service.keyspace.shard(1 - to).account(tenantId)), 'the account');
  const mover = openMover(async (name, call) => {
    const result = await call();
    if (name === 'state.copy') {
      await service.admin('post', `/tenants/${tenantId}/credits`, { credits: 50 });
      await service.admin('delete', `/tenants/${tenantId}/keys/${keyId}`);
      await service.admin('patch', `/tenants/${tenantId}/keys/${narrowed}`, { rpm: 5 });
    }
    return result;
  });

  await mover.move(tenantId, to);

  expect(await balances(tenant)).toMatchObject({ told: 150, sum: 150 });
  expect(await service.redis.get(service.keyspace.shard(to).blocked(keyId))).toBe('1');
  expect(await service.redis.get(service.keyspace.shard(to).blocked(`${narrowed}:0`))).toBe('changed');
});

it('serves tenants of two moves in a row from the shard where they are', async () => {
  const tenant = await service.startTenant();
  const from = await shardOf(service, tenant.tenantId);
  const requestId = await chat(tenant);
  for (const to of [1 - from, from]) {
    expect((await moveWhenIdle(service, tenant.tenantId, to)).status).toBe(200);
    await chat(tenant);
  }

  const found = await apiOf(service, tenant.key)('get', `/chat/${requestId}`);

  expect(found.body).toMatchObject({ status: 'completed' });
});

it('a batch that was begun before a move, and stored after it, runs on the shard of its tenant', async () => {
  const { tenantId, keyId } = await service.startTenant();
  const from = await shardOf(service, tenantId);
  await moveWhenIdle(service, tenantId, 1 - from);
  const now = Date.now();

  await createBatchRepository(service.mongo).insert({
    ...{ _id: newId('batch'), tenantId, keyId, mode: 'live', shard: from, status: 'validating', waitingFor: null },
    ...{ total: 0, completed: 0, failed: 0, createdAt: now, expiresAt: now + 60_000, removeAt: new Date(now + 60_000) },
  });

  const row = await service.models.batches.findOne({ tenantId }).lean();
  expect(row).toMatchObject({ shard: 1 - from, openShard: 1 - from });
});
