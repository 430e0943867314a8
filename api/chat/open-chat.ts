import { createAdmission } from '../../shared/requests/admission.ts';
import { createEnqueuer } from '../../shared/requests/enqueue.ts';
import { createRefund } from '../../shared/requests/refund.ts';
import { createQueueOrderStore } from '../../shared/requests/body-store.ts';
import { STORED_ANSWER_MS } from '../../shared/contracts/jobs.ts';
import type { Pseudonyms } from '../../shared/domain/pseudonyms.ts';
import { createRequestIntents } from '../../shared/mongo/requests/request-intents.ts';
import { createRoutingCache } from '../../shared/mongo/routing/routing-cache.ts';
import { createRoutingRepository } from '../../shared/mongo/routing/routing-repository.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import type { Connections, Stores } from '../open-stores.ts';
import type { RelayHub } from '../relay/hub.ts';
import { createAccept } from './accept.ts';
import type { AdmissionEvents } from './accept.ts';
import { openDurableRequests } from './durable-requests.ts';
import type { FollowMove } from '../http/follow-move.ts';

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
  const { accounts, accountStore, admissionStore, records, recorder, batchQueue } = stores;
  const { hub, pseudonyms, follow, events } = parts;
  const requestTimeoutMs = config.limits.requestTimeoutSeconds * 1000;
  const retentionMs = config.limits.streamRetentionSeconds * 1000;

  const routing = await createRoutingCache({ repository: createRoutingRepository(mongo, cipher), log });
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
    refund: createRefund({ mongo, accountStore, clock, log, giveUpAfterMs: requestTimeoutMs }),
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
    batchQueue,
    retention: { ordinaryMs: retentionMs, storedAnswerMs: STORED_ANSWER_MS },
    follow,
    onEarlyEnd: recorder.endEarly,
    events,
  });
  return { accept, routing, restoreFromMongo, intentStore, recovery };
}
