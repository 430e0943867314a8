import { DEFAULT_RATES } from '../../shared/domain/routing/routing.ts';
import type { Rates, RoutingTable } from '../../shared/domain/routing/routing.ts';
import { laneOf } from '../../shared/contracts/jobs.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type {
  AttemptRef,
  Claimed as ClaimedRequest,
  Held,
  RequestStore,
} from '../../shared/infra/redis/requests/request-store.ts';
import type { StreamReader } from '../../shared/infra/redis/requests/stored-answers.ts';
import type { WorkerEmitter } from '../worker-events.ts';
import type { Claimed, Delivery, Lease } from './stage.ts';

export interface ClaimDeps {
  requests: Pick<RequestStore, 'claim'>;
  streams: StreamReader;
  routing: { current(): RoutingTable };
  openLease: (options: { ref: AttemptRef; rates: Rates; maxTokens: number; remainingMs: number; held: Held }) => Lease;
  /** Lets a later delivery wait for an attempt that lives. */
  awaitTurn: (delivery: Delivery) => Promise<void>;
  events: WorkerEmitter;
  log: Logger;
}

/** What an attempt that died had already sent. */
async function textSoFar(streams: StreamReader, { shard, requestId }: AttemptRef): Promise<string> {
  const entries = await streams.readFrom(shard, requestId, 1);
  return entries.flatMap((entry) => entry.deltas.map((literal) => String(JSON.parse(literal)))).join('');
}

function refOf(claimed: ClaimedRequest): AttemptRef {
  const { requestId, tenantId, keyId, endpoint } = claimed.envelope;
  const { fence, owner } = claimed;
  return { shard: claimed.shard, requestId, tenantId, keyId, lane: laneOf(endpoint), fence, owner };
}

/** Takes the request under a fence. Undefined: another attempt has it, or it has ended. */
export function createClaim({ requests, streams, routing, openLease, awaitTurn, events, log }: ClaimDeps) {
  return async (delivery: Delivery): Promise<Claimed | undefined> => {
    const { shard, requestId, tenantId, attempt } = delivery;
    await awaitTurn(delivery);
    const claimed = await requests.claim(shard, requestId, tenantId, attempt);
    if (claimed.kind === 'drop') {
      log.info(`A delivery was dropped: ${claimed.reason}.`, { requestId, attempt });
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
