import { createAdmission } from '../../shared/requests/admission.ts';
import { createEnqueuer } from '../../shared/requests/enqueue.ts';
import { createRefund } from '../../shared/requests/refund.ts';
import { createQueueOrderStore } from '../../shared/requests/body-store.ts';
import { STORED_ANSWER_MS } from '../../shared/contracts/jobs.ts';
import { createRequestIntents } from '../../shared/mongo/requests/request-intents.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import type { IngressParts } from '../open-stores.ts';
import type { RelayHub } from '../relay/hub.ts';
import { createAccept } from './accept.ts';
import type { AdmissionEvents } from './accept.ts';
import { openDurableRequests } from './durable-requests.ts';
import type { FollowMove } from '../http/follow-move.ts';

/** With Redis away a caller is told 503 within 2 s (docs/spec.md#stores-away), of which its admission took some. */
const TELL_MS = 1_800;

/** An ingress that ends waits so long until requests that it answered 503 are taken back, or known to the workers. */
const TAKE_BACK_MS = 5_000;

/** Opens the path of a chat request into the queue, or to the answer of an earlier call. */
export function openAdmission(
  parts: IngressParts,
  { hub, follow, events }: { hub: RelayHub; follow: FollowMove; events: Emitter<AdmissionEvents> },
) {
  const { clock, closer, redis, keyspace, memory, mongo, requestTimeoutMs, retentionMs } = parts;
  const { admissionStore: store, recorder } = parts;
  const onEarlyEnd = recorder.endEarly;

  const { restoreFromMongo, intentStore, recovery } = openDurableRequests({ ...parts, admissions: store, onEarlyEnd });
  const intents = createRequestIntents(mongo);
  const enqueuer = createEnqueuer({
    ...parts,
    queueOrder: createQueueOrderStore(redis, keyspace, requestTimeoutMs),
    store,
    giveUpAfterMs: requestTimeoutMs,
    tellWithinMs: TELL_MS,
    handOver: (requestId, principal) => intents.keepTakenBack(requestId, principal, clock.now()),
    refund: createRefund({ ...parts, giveUpAfterMs: requestTimeoutMs }),
  });
  closer.defer('taking back', () => enqueuer.idle(), { limitMs: TAKE_BACK_MS });
  const admit = createAdmission({ ...parts, store, isFull: memory.isFull, voidLater: enqueuer.voidLater });
  const accept = createAccept({
    ...parts,
    admit,
    enqueuer,
    hub,
    restoreFromMongo,
    intentStore,
    retention: { ordinaryMs: retentionMs, storedAnswerMs: STORED_ANSWER_MS },
    follow,
    onEarlyEnd,
    events,
  });
  return { accept, restoreFromMongo, intentStore, recovery };
}
