import { createAdmission } from '../../shared/admission/admission.ts';
import { createEnqueue } from '../../shared/admission/enqueue.ts';
import type { Pseudonyms } from '../../shared/domain/compliance/pseudonyms.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { MongoConnection } from '../../shared/infra/mongo/connection.ts';
import { createAccountRepository } from '../../shared/infra/mongo/accounts/account-repository.ts';
import { createBatchWorkRepository } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import { createPrincipalRepository } from '../../shared/infra/mongo/tenants/principal-repository.ts';
import type { RoutingCache } from '../../shared/infra/mongo/routing/routing-cache.ts';
import type { AccountStore } from '../../shared/infra/redis/accounts/account-store.ts';
import type { RecentWrites } from '../../shared/infra/redis/recent-writes.ts';
import type { AdmissionStore } from '../../shared/infra/redis/requests/admission-store.ts';
import { createAnswerCache } from '../../shared/infra/redis/requests/stored-answers.ts';
import { createLineStore } from '../../shared/infra/redis/requests/line-store.ts';
import { createBatchQueue } from '../../shared/infra/redis/requests/queue-store.ts';
import type { RedisClient } from '../../shared/infra/redis/connection.ts';
import type { Keyspace } from '../../shared/infra/redis/keyspace.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { EventSink } from '../../shared/webhooks/event-sink.ts';
import type { Breakers } from '../pipeline/breakers/breakers.ts';
import type { WorkerEventBus } from '../worker-events.ts';
import { createCloseBatch } from './close-batch.ts';
import { createCollectEnds } from './collect-ends.ts';
import { createDispatcher } from './dispatcher.ts';
import type { Dispatcher } from './dispatcher.ts';
import { createFillQueue } from './fill-queue.ts';
import { createProviderWatch } from './provider-watch.ts';
import { createReadLines } from './read-lines.ts';
import { createSendLine } from './send-line.ts';

export interface OpenDispatcherDeps {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
  routing: RoutingCache;
  admissions: AdmissionStore;
  isFull: () => boolean;
  accountStore: AccountStore;
  leases: LeaderLease;
  /** The name under which `leases` are held. */
  workerId: string;
  breakers: Pick<Breakers, 'isClosed' | 'isPassable'>;
  telemetry: Pick<WorkerEventBus, 'on'>;
  pseudonyms: Pick<Pseudonyms, 'of'>;
  events: Pick<EventSink, 'publish'>;
  /** Written again whenever Redis is back. */
  recentWrites: Pick<RecentWrites, 'note'>;
  hasReconnectedRecently: () => boolean;
  requestTimeoutMs: number;
  retentionMs: number;
  clock: Clock;
  log: Logger;
}

/** Puts together what runs batches: see dispatcher.ts for what it does. */
export function openDispatcher(deps: OpenDispatcherDeps): Dispatcher {
  const { mongo, redis, keyspace, admissions, leases, events, recentWrites, hasReconnectedRecently } = deps;
  const { retentionMs, clock, log } = deps;
  const work = createBatchWorkRepository(mongo);
  const queue = createBatchQueue(redis, keyspace);
  const lines = createReadLines({ work, queue });
  const watch = createProviderWatch({
    routing: deps.routing,
    breakers: deps.breakers,
    now: () => performance.now(),
    log,
  });
  // What anybody's request finds out about a provider counts for lines, too.
  deps.telemetry.on('request.finished', ({ envelope, answer }) => {
    watch.noteEnd(envelope.tier, answer.trace, false);
  });
  const enqueue = createEnqueue({
    line: createLineStore(redis, keyspace, deps.requestTimeoutMs),
    // Nobody was told that a line was not accepted: one that a worker has runs on, and is found as sent.
    store: { voidTold: admissions.void, disown: admissions.void },
    giveUpAfterMs: deps.requestTimeoutMs,
    recentWrites,
    clock,
    log,
  });
  const admit = createAdmission({
    store: admissions,
    accounts: createAccountRepository(mongo),
    accountStore: deps.accountStore,
    routing: deps.routing,
    isFull: deps.isFull,
    takeBack: (requestId, principal, isRefused) => {
      // A line that a full Redis refuses is sent again under its id, which finds it where it was let in before.
      if (!isRefused) enqueue.takeBack(requestId, principal);
    },
    pseudonyms: deps.pseudonyms,
    clock,
    log,
  });
  return createDispatcher({
    work,
    fillQueue: createFillQueue({
      work,
      queue,
      lines,
      watch,
      clock,
      principals: createPrincipalRepository(mongo),
      sendLine: createSendLine({ admit, enqueue, watch, leaderId: deps.workerId, log }),
    }),
    collectEnds: createCollectEnds({
      work,
      queue,
      lines,
      watch,
      answers: createAnswerCache(redis, keyspace),
      retentionMs,
      clock,
      random: Math.random,
      log,
    }),
    queue,
    closeBatch: createCloseBatch({ work, admissions, queue, lines, events, recentWrites, clock, log }),
    watch,
    leases,
    hasReconnectedRecently,
    clock,
    log,
  });
}
