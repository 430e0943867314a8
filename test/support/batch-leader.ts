import { setTimeout as pause } from 'node:timers/promises';

import { createPseudonyms } from '../../shared/domain/pseudonyms.ts';
import { createCredentialCipher } from '../../shared/mongo/credentials.ts';
import { createRoutingCache } from '../../shared/mongo/routing/routing-cache.ts';
import { createRoutingRepository } from '../../shared/mongo/routing/routing-repository.ts';
import { createChatQueues } from '../../shared/queue/queues.ts';
import { createAccountStore } from '../../shared/redis/stores/account-store.ts';
import { createLeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import { createReplayLog } from '../../shared/redis/redis-return.ts';
import { createAdmissionStore } from '../../shared/requests/admission-store.ts';
import { createRequestStore } from '../../shared/requests/delivery-store.ts';
import { systemClock } from '../../shared/lifecycle/clock.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { createEventBus } from '../../shared/lifecycle/event-bus.ts';
import { openDispatcher } from '../../workers/batches/dispatcher.ts';
import type { WorkerEvents } from '../../workers/pipeline/worker-events.ts';
import type { TestService } from './service.ts';

const LOOK_MS = 20;
const LEADER_ID = 'wrk_cut_off';
const LIMITS = { queueLimit: 10_000, requestTimeoutMs: 600_000, retentionMs: 60_000 };

/** A dispatcher of batches without a worker beside it, whose admissions can be held up on their way to Redis. */
export interface BatchLeader {
  /** Leads shard 0 until lines are on their way to admission, and holds them there until they are let go. */
  takeInHand(): Promise<{ letGo: () => void; ended: Promise<unknown> }>;
  /** Leads until an admission has happened that is not heard of before a worker has the request; returns its id. */
  loseAnswer(): Promise<string>;
  /** Leads for one round. */
  lead(): Promise<unknown>;
  /** Tells Redis again what this leader has told it last. */
  replay(): Promise<void>;
  /** Leads without having heard of another leader. */
  takeLease(): Promise<void>;
  /** Gives the lease up. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

export async function openLeader(
  { mongo, redis, keyspace, log }: TestService,
  clock: Clock = systemClock,
  hasReconnectedRecently: (shard: number, withinMs?: number) => boolean = () => false,
): Promise<BatchLeader> {
  const key = Buffer.alloc(32, 7);
  const routing = await createRoutingCache({
    repository: createRoutingRepository(mongo, createCredentialCipher(key)),
    log,
  });
  const leases = createLeaderLease(redis, keyspace, LEADER_ID);
  const store = createAdmissionStore(redis, keyspace, LIMITS);
  let gate: Promise<void> | undefined;
  let held = 0;
  const requests = createRequestStore(redis, keyspace, { leaseMs: 60_000, disconnectGraceMs: 60_000 });
  let lost: string | undefined;
  let loses = false;
  const replayLog = createReplayLog({ hasReconnectedRecently: () => false, clock, log });
  const dispatcher = openDispatcher({
    mongo,
    redis,
    keyspace,
    queues: createChatQueues(redis, keyspace, () => undefined),
    routing,
    leases,
    log,
    admissions: {
      ...store,
      async admit(...call) {
        if (gate !== undefined) {
          held += 1;
          await gate;
          held -= 1;
        }
        const admission = await store.admit(...call);
        if (!loses) return admission;
        const [{ requestId, principal }] = call;
        await requests.claim({ shard: 0, requestId, tenantId: principal.tenantId, fence: 1 });
        lost = requestId;
        throw new Error('Command timed out');
      },
    },
    replayLog,
    workerId: LEADER_ID,
    isFull: () => false,
    breakers: { isClosed: () => true, isPassable: () => true },
    telemetry: createEventBus<WorkerEvents>(() => undefined),
    accountStore: createAccountStore(redis, keyspace),
    pseudonyms: createPseudonyms(key),
    events: { publish: () => Promise.resolve() },
    hasReconnectedRecently,
    requestTimeoutMs: LIMITS.requestTimeoutMs,
    retentionMs: LIMITS.retentionMs,
    clock,
  });

  return {
    async takeInHand() {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      gate = promise.then(() => undefined);
      let ended: Promise<unknown> = Promise.resolve();
      for (let isOver = true; held === 0;) {
        if (isOver) {
          isOver = false;
          ended = dispatcher.dispatchShard(0).finally(() => (isOver = true));
        }
        await pause(LOOK_MS);
      }
      const letGo = () => {
        gate = undefined;
        resolve(undefined);
      };
      return { letGo, ended };
    },
    async loseAnswer() {
      loses = true;
      for (;;) {
        await dispatcher.dispatchShard(0);
        const requestId = lost;
        if (requestId === undefined) {
          await pause(LOOK_MS);
          continue;
        }
        loses = false;
        lost = undefined;
        return requestId;
      }
    },
    lead: () => dispatcher.dispatchShard(0),
    replay: replayLog.replay,
    async takeLease() {
      if (!(await leases.hold(0, 'batches'))) throw new Error('Another process leads');
    },
    stop: () => dispatcher.release(0),
    close() {
      routing.stop();
      return Promise.resolve();
    },
  };
}
