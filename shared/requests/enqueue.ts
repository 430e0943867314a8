import { setTimeout as pause } from 'node:timers/promises';

import { LOST } from '../contracts/events.ts';
import { queueOf } from '../contracts/jobs.ts';
import type { RequestEnvelope } from '../contracts/jobs.ts';
import type { Principal } from '../domain/principal.ts';
import { ServiceError } from '../errors/service-error.ts';
import type { Logger } from '../logging/logger.ts';
import type { AdmissionStore } from './admission-store.ts';
import type { ReplayLog } from '../redis/redis-return.ts';
import type { QueueOrderStore } from './body-store.ts';
import { inTime } from '../redis/time-limits.ts';
import type { Clock } from '../lifecycle/clock.ts';

export interface EnqueuerDeps {
  queueOrder: QueueOrderStore;
  store: Pick<AdmissionStore, 'voidPermanently' | 'voidRefused'>;
  clock: Clock;
  log: Logger;
  /** The sweep takes an admission over after this time. */
  giveUpAfterMs: number;
  /** A waiting caller is told within this time that nothing was accepted. Absent: none waits. */
  tellWithinMs?: number;
  /** Absent: a taken back request may run if Redis comes back without that. */
  replayLog?: ReplayLog;
  /** Notes beside Redis that a request is to be taken back, as this process may end first. */
  handOver?: (requestId: string, principal: Principal) => Promise<void>;
  /** For a request that was charged although its caller was told 503. */
  refund?: (requestId: string, principal: Principal) => Promise<unknown>;
}

export type Enqueuer = ReturnType<typeof createEnqueuer>;

const RETRY_MS = 250;
/** void.lua's states of an admission that will not run. `void`: an earlier try succeeded unanswered. */
const TAKEN_BACK: ReadonlySet<string | undefined> = new Set(['accepted', 'missing', 'stopped', 'void']);

/** The caller was told 503. Redis may come back with the request, perhaps at a worker, and without its taking back. */
function reportTaken(deps: EnqueuerDeps, state: string | undefined, requestId: string, principal: Principal): void {
  const { store, replayLog, refund } = deps;
  if (!TAKEN_BACK.has(state)) return;
  const { shard, tenantId } = principal;
  replayLog?.note(
    async () => {
      // The request came back, ended and was charged, but nobody can read its answer, or knows of it.
      if ((await store.voidRefused(requestId, principal, LOST)) === 'gone') void refund?.(requestId, principal);
    },
    { shard, requestId, tenantId },
  );
}

/** Returns the record's state. Undefined: Redis did not answer in time. */
async function tryUntil(clock: Clock, until: number, write: () => Promise<string>): Promise<string | undefined> {
  while (clock.now() < until) {
    try {
      return await write();
    } catch {
      await pause(RETRY_MS);
    }
  }
  return undefined;
}

async function putInQueue(
  queueOrder: EnqueuerDeps['queueOrder'],
  envelope: RequestEnvelope,
  { shard }: Principal,
): Promise<void> {
  const { requestId, tenantId, endpoint } = envelope;
  const body = JSON.stringify(envelope);
  const state = await inTime(queueOrder.enqueue(shard, queueOf(endpoint), { requestId, tenantId, body }));
  if (state === 'void' || state === 'missing') throw new Error(`The request is ${state}`);
}

/** For a call that has joined. False: recovery queues a request with an intent, else the sweep ends it. */
async function putInQueueForOthers(
  { queueOrder, log }: EnqueuerDeps,
  envelope: RequestEnvelope,
  principal: Principal,
): Promise<boolean> {
  try {
    await putInQueue(queueOrder, envelope, principal);
    return true;
  } catch (error) {
    log.warn('A request that another call has joined is not queued.', { requestId: envelope.requestId, error });
    return false;
  }
}

/** Tries until Redis confirms it. */
function createTakeBack(deps: EnqueuerDeps) {
  const { store, clock, log, giveUpAfterMs, tellWithinMs, handOver, refund } = deps;
  const takingBack = new Set<Promise<void>>();

  async function untilConfirmed(write: () => Promise<string>, requestId: string): Promise<string | undefined> {
    const state = await tryUntil(clock, clock.now() + giveUpAfterMs, write);
    if (state === undefined)
      log.error('An admission could not be taken back in time; if Redis has it queued, it runs.', { requestId });
    return state;
  }

  function voidLater(requestId: string, principal: Principal, isRefused = false, envelope?: RequestEnvelope): void {
    // LOST ends the stream for readers by the request's id.
    const taking = untilConfirmed(() => store.voidRefused(requestId, principal, LOST, isRefused), requestId);
    const taken = taking.then(async (state) => {
      if (!isRefused) reportTaken(deps, state, requestId, principal);
      if (state === 'joined' && envelope !== undefined) await putInQueueForOthers(deps, envelope, principal);
      if (state === 'gone') await refund?.(requestId, principal);
    });
    const known = inTime(taken)
      .catch(() => handOver?.(requestId, principal))
      .catch((error: unknown) => {
        log.warn('Only this process knows that a request is to be taken back.', { requestId, error });
      });
    takingBack.add(known);
    void known.finally(() => takingBack.delete(known));
  }

  /** The record's state before anybody is told. Undefined: the waiting caller is told anyway. */
  async function beforeTelling(
    tellAt: number,
    envelope: RequestEnvelope,
    principal: Principal,
  ): Promise<string | undefined> {
    const { requestId } = envelope;
    const write = () => store.voidPermanently(requestId, principal, LOST);
    if (tellWithinMs === undefined) return untilConfirmed(write, requestId);
    const trying = inTime(tryUntil(clock, tellAt, write), Math.max(0, tellAt - clock.now()));
    const state = await trying.catch(() => undefined);
    // The caller is told now, so a worker that has the request must stop.
    if (state === undefined) voidLater(requestId, principal, false, envelope);
    return state;
  }

  async function idle(): Promise<void> {
    await Promise.all(takingBack);
  }

  return { voidLater, beforeTelling, idle };
}

export function createEnqueuer(deps: EnqueuerDeps) {
  const { queueOrder, clock, log, tellWithinMs } = deps;
  const { voidLater, beforeTelling, idle } = createTakeBack(deps);

  return {
    /**
     * Queues a request that was admitted without its body. Throws `model_unavailable` once the admission is taken back,
     * or, for a waiting caller, when Redis does not confirm that in time: then `voidLater` takes it back.
     */
    async enqueue(envelope: RequestEnvelope, principal: Principal): Promise<void> {
      const { requestId } = envelope;
      const tellAt = clock.now() + (tellWithinMs ?? 0);
      try {
        await putInQueue(queueOrder, envelope, principal);
      } catch (cause) {
        // Unknown outcome: the job may exist. If a worker has it already, it goes on and its answer is relayed.
        const state = await beforeTelling(tellAt, envelope, principal);
        if (state === 'running' || state === 'done') return;
        if (state === 'joined' && (await putInQueueForOthers(deps, envelope, principal))) return;
        reportTaken(deps, state, requestId, principal);
        log.warn('A request could not be enqueued and was, or is being, taken back.', { requestId, error: cause });
        throw new ServiceError('model_unavailable', 'The queue does not answer at the moment; try again shortly.', {
          cause,
          retryAfterSeconds: 1,
        });
      }
    },

    /**
     * Takes an admission back in the background, until Redis confirms it. `isRefused`: Redis did nothing, so no
     * tombstone is needed against commands under way. `envelope`: of a request without its body, which is queued
     * instead if another call has joined it.
     */
    voidLater,

    /** Resolves once all that is being taken back is, or is known beside this process. */
    idle,
  };
}
