import { setTimeout as pause } from 'node:timers/promises';

import { createAdmission } from '../../shared/requests/admission.ts';
import { createEnqueuer } from '../../shared/requests/enqueue.ts';
import { createQueueOrderStore } from '../../shared/requests/body-store.ts';
import { STORED_ANSWER_MS } from '../../shared/contracts/jobs.ts';
import type { Pseudonyms } from '../../shared/domain/pseudonyms.ts';
import type { Principal } from '../../shared/domain/principal.ts';
import { createLedgerRepository, refundIdOf } from '../../shared/mongo/accounts/ledger-repository.ts';
import type { LedgerRepository } from '../../shared/mongo/accounts/ledger-repository.ts';
import type { AccountRepository } from '../../shared/mongo/accounts/account-repository.ts';
import { createRequestIntents } from '../../shared/mongo/requests/request-intents.ts';
import { createRoutingCache } from '../../shared/mongo/routing/routing-cache.ts';
import { createRoutingRepository } from '../../shared/mongo/routing/routing-repository.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Connections, Stores } from '../open-stores.ts';
import type { RelayHub } from '../relay/hub.ts';
import { createAccept } from './accept.ts';
import type { AdmissionEvents } from './accept.ts';
import { openDurableRequests } from './durable-requests.ts';
import type { FollowMove } from '../http/follow-move.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { TenantRepository } from '../../shared/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../shared/redis/stores/account-store.ts';

interface RefundDeps {
  ledger: LedgerRepository;
  accounts: AccountRepository;
  accountStore: AccountStore;
  tenants: TenantRepository;
  clock: Clock;
  log: Logger;
  giveUpAfterMs: number;
}

const RETRY_MS = 500;
const REASON = 'Refund of a request that was answered with 503 and had ended.';

/**
 * Refunds the credits and budget tokens of a request, once. Its caller got 503, and nobody has the answer, because the
 * tenant keeps none or Redis had lost the request by then. Tries for a while, because the charge may not be booked yet,
 * or MongoDB may be unavailable.
 */
export function createRefund({ ledger, accounts, accountStore, tenants, clock, log, giveUpAfterMs }: RefundDeps) {
  async function tryOnce(requestId: string, { tenantId, shard }: Principal): Promise<boolean> {
    const refunded = await ledger.chargeOf(tenantId, requestId);
    if (refunded === undefined) return false;
    if (refunded.mode === 'test') return true;
    const transactionId = refundIdOf(requestId);
    const entry = {
      transactionId,
      tenantId,
      type: 'adjustment',
      amountMicro: refunded.costMicro,
      refunded,
      reason: REASON,
      now: clock.now(),
    } as const;
    const { book } = await accounts.book(entry);
    // Read after the booking: if the tenant is being moved, the ledger balance must reach the shard on which the tenant ends up.
    const tenant = await tenants.find(tenantId);
    await accountStore.publishBalance(tenant?.shard ?? shard, tenantId, book);
    log.warn('A request that was refused had ended; its charge was given back.', { requestId, tenantId });
    return true;
  }

  return async (requestId: string, principal: Principal): Promise<void> => {
    const until = clock.now() + giveUpAfterMs;
    let fault: unknown;
    while (clock.now() < until) {
      const isDone = await tryOnce(requestId, principal).catch((error: unknown) => {
        fault = error;
        return false;
      });
      if (isDone) return;
      await pause(RETRY_MS);
    }
    const { tenantId } = principal;
    log.error('The charge of a refused request could not be given back.', { requestId, tenantId, error: fault });
  };
}

interface AdmissionParts {
  hub: RelayHub;
  pseudonyms: Pseudonyms;
  follow: FollowMove;
  events: Emitter<AdmissionEvents>;
}

/** With Redis away a caller is told 503 within 2 s (docs/spec.md#stores-away), of which its admission took some. */
const TELL_MS = 1_800;

/** An ingress that ends waits so long until requests that it answered 503 are taken back, or known to the workers. */
const TAKE_BACK_MS = 5_000;

/** Opens the path of a chat request into the queue, or to the answer of an earlier call. */
export async function openAdmission(connections: Connections, stores: Stores, parts: AdmissionParts) {
  const { config, clock, closer, log, redis, keyspace, memory, replayLog, mongo, cipher } = connections;
  const { accounts, accountStore, admissionStore, records, recorder, tenants } = stores;
  const { hub, pseudonyms, follow, events } = parts;
  const requestTimeoutMs = config.limits.requestTimeoutSeconds * 1000;
  const retentionMs = config.limits.streamRetentionSeconds * 1000;

  const routing = await createRoutingCache({
    repository: createRoutingRepository(mongo, cipher),
    log,
  });
  closer.defer('routing', () => {
    routing.stop();
  });
  const { restoreFromMongo, intentStore, recovery } = openDurableRequests({
    ...connections,
    accountStore,
    routing,
    pseudonyms,
    requestTimeoutMs,
    retentionMs,
    store: admissionStore,
    isFull: memory.isFull,
    onEarlyEnd: recorder.endEarly,
  });
  const intents = createRequestIntents(mongo);
  const enqueuer = createEnqueuer({
    clock,
    log,
    queueOrder: createQueueOrderStore(redis, keyspace, requestTimeoutMs),
    store: admissionStore,
    giveUpAfterMs: requestTimeoutMs,
    tellWithinMs: TELL_MS,
    replayLog,
    handOver: (requestId, principal) => intents.keepTakenBack(requestId, principal, clock.now()),
    refund: createRefund({
      accounts,
      accountStore,
      tenants,
      clock,
      log,
      giveUpAfterMs: requestTimeoutMs,
      ledger: createLedgerRepository(mongo),
    }),
  });
  closer.defer('taking back', () => enqueuer.idle(), { limitMs: TAKE_BACK_MS });
  const admit = createAdmission({
    store: admissionStore,
    accounts,
    accountStore,
    routing,
    isFull: memory.isFull,
    voidLater: enqueuer.voidLater,
    pseudonyms,
    clock,
    log,
  });
  const accept = createAccept({
    routing,
    admit,
    enqueuer,
    hub,
    records,
    restoreFromMongo,
    intentStore,
    retention: { ordinaryMs: retentionMs, storedAnswerMs: STORED_ANSWER_MS },
    follow,
    onEarlyEnd: recorder.endEarly,
    events,
  });
  return { accept, routing, restoreFromMongo, intentStore, recovery };
}
