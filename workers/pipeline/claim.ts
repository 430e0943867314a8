import { setTimeout as pause } from 'node:timers/promises';

import { DEFAULT_RATES } from '../../shared/domain/routing/routing.ts';
import type { Rates, RoutingTable } from '../../shared/domain/routing/routing.ts';
import { queueOf } from '../../shared/contracts/jobs.ts';
import { toErrorDetail } from '../../shared/errors/error-body.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { ClaimedRequest, Held } from '../../shared/infra/redis/requests/running-request.ts';
import type { AttemptRef, Ending, RequestStore, Unreadable } from '../../shared/infra/redis/requests/request-store.ts';
import type { StreamReader } from '../../shared/infra/redis/requests/stored-answers.ts';
import type { WorkerEmitter } from '../worker-events.ts';
import type { Claimed, Delivery, Lease } from './stage.ts';

const POLL_MS = 250;
/** By this time after a reconnect every worker has replayed what it ended and renewed what it runs. */
export const REPLAYED_MS = 1_500;

export interface TurnDeps {
  requests: Pick<RequestStore, 'leaseLeftMs'>;
  /** Whether Redis has just come back: a lease that ran out meanwhile does not mean that its worker is dead. */
  hasReconnectedRecently: (withinMs?: number) => boolean;
}

export interface ClaimDeps extends TurnDeps {
  requests: Pick<RequestStore, 'claim' | 'finish' | 'leaseLeftMs'>;
  streams: StreamReader;
  routing: { current(): RoutingTable };
  openLease: (options: { ref: AttemptRef; rates: Rates; maxTokens: number; remainingMs: number; held: Held }) => Lease;
  events: WorkerEmitter;
  log: Logger;
}

/**
 * Whether a delivery may claim its request. BullMQ hands a job out again when its lock runs out, but its worker may live,
 * cut off from Redis for a while. While that worker renews the request's lease, a later delivery gives up: claiming would
 * end a stream that has begun, and waiting would block a place of this worker. If the first worker dies after all, the
 * sweep finds its lease expired. The fence keeps this safe; the check is a courtesy.
 */
export async function hasTurn(
  { requests, hasReconnectedRecently }: TurnDeps,
  { shard, requestId, attempt }: Delivery,
): Promise<boolean> {
  const isFirst = attempt === 1;
  while (hasReconnectedRecently(isFirst ? REPLAYED_MS : undefined)) await pause(POLL_MS);
  return isFirst || (await requests.leaseLeftMs(shard, requestId)) === 0;
}

/** The text that an earlier delivery had sent. */
async function textSoFar(streams: StreamReader, { shard, requestId }: AttemptRef): Promise<string> {
  const entries = await streams.readFrom(shard, requestId, 1);
  return entries.flatMap((entry) => entry.deltas.map((literal) => String(JSON.parse(literal)))).join('');
}

function refOf(claimed: ClaimedRequest): AttemptRef {
  const { requestId, tenantId, keyId, endpoint } = claimed.envelope;
  const { fence, owner } = claimed;
  return { shard: claimed.shard, requestId, tenantId, keyId, queue: queueOf(endpoint), fence, owner };
}

/** A request whose body cannot be read cannot be priced either, so its hold is given back. */
function endOf({ retentionMs }: Unreadable): Ending {
  const error = toErrorDetail(
    new ServiceError(
      'internal_error',
      'The service failed unexpectedly; try again, and name the request id if it stays.',
    ),
  );
  const terminal = { finishReason: 'error', usage: { promptTokens: 0, completionTokens: 0 }, error } as const;
  return { status: 'failed', deltas: [], terminal, costMicro: 0, retentionMs };
}

/** Takes the request under a fence. Undefined: another attempt has it, or it has ended. */
export function createClaim(deps: ClaimDeps) {
  const { requests, streams, routing, openLease, events, log } = deps;
  return async (delivery: Delivery): Promise<Claimed | undefined> => {
    const { shard, requestId, tenantId, attempt, job } = delivery;
    const made = job?.claim;
    if (made === undefined && !(await hasTurn(deps, delivery))) {
      log.info('A delivery was dropped: the worker that has the request lives.', { requestId, attempt });
      return undefined;
    }
    const claimed = await requests.claim(shard, requestId, tenantId, attempt, made);
    if (claimed.kind === 'drop') {
      log.info(`A delivery was dropped: ${claimed.reason}.`, { requestId, attempt });
      return undefined;
    }
    if (claimed.kind === 'unreadable') {
      log.error('A request cannot be read and is ended.', { requestId, tenantId, error: claimed.error });
      await requests.finish(claimed.ref, claimed.sent, endOf(claimed));
      return undefined;
    }
    const { envelope, seq, sent, remainingMs, held, promptTokens } = claimed;
    const ref = refOf(claimed);
    const rates = claimed.rates ?? routing.current().tiers[envelope.tier]?.rates ?? DEFAULT_RATES[envelope.tier];
    const { maxTokens } = envelope.request;
    const lease = openLease({ ref, rates, maxTokens, remainingMs, held });
    if (claimed.cancelled) lease.stop('cancelled');
    const text = sent > 0 ? await textSoFar(streams, ref) : '';
    const answer = {
      sentSeq: sent,
      text,
      unsent: [],
      sent: [],
      asked: undefined,
      promptTokens,
      provider: '',
      model: '',
      trace: { attempts: [] },
    };
    const run = {
      interrupted: sent > 0 || delivery.endOnly === true,
      ref,
      job,
      envelope,
      seq,
      rates,
      lease,
      answer,
    };
    events.emit('request.claimed', run);
    return run;
  };
}
