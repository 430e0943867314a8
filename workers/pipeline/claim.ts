import { setTimeout as pause } from 'node:timers/promises';

import type { Pseudonyms } from '../../shared/domain/pseudonyms.ts';
import { holdRates } from '../../shared/domain/pricing.ts';
import { DEFAULT_RATES } from '../../shared/domain/routing.ts';
import type { RoutingTable } from '../../shared/domain/routing.ts';
import { FAULT, lineText } from '../../shared/contracts/events.ts';
import type { RequestEnvelope } from '../../shared/contracts/jobs.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { ClaimedRequest } from '../../shared/requests/delivery.ts';
import type { Delivery, RequestStore } from '../../shared/requests/delivery-store.ts';
import type { StreamReader } from '../../shared/requests/answers.ts';
import type { WorkerEmitter } from './worker-events.ts';
import { loadTokenDecoder } from './count-tokens.ts';
import type { LeaseOptions } from './lease.ts';
import type { AnswerSoFar, Claimed, HandedRequest, Lease } from './stage.ts';

const POLL_MS = 250;
/** By this time after a reconnect every worker has replayed what it ended and renewed what it runs. */
export const REPLAYED_MS = 1_500;

export interface MayClaimDeps {
  requests: RequestStore;
  /** Whether a shard's Redis has just come back: a lease that ran out meanwhile does not mean that its worker is dead. */
  hasReconnectedRecently: (shard: number, withinMs?: number) => boolean;
}

export interface ClaimDeps extends MayClaimDeps {
  requests: RequestStore;
  streams: StreamReader;
  routing: { current(): RoutingTable };
  openLease: (options: LeaseOptions) => Lease;
  pseudonyms: Pseudonyms;
  events: WorkerEmitter;
  log: Logger;
}

/**
 * Whether a delivery may claim its request. BullMQ hands a job out again when its lock runs out, but its worker may live,
 * cut off from Redis for a while. While that worker renews the request's lease, a later delivery gives up: claiming would
 * end a stream that has begun, and waiting would block a place of this worker. If the first worker dies after all, the
 * sweep finds its lease expired. The fence keeps this safe; the check is a courtesy.
 */
export async function mayClaim(
  { requests, hasReconnectedRecently }: MayClaimDeps,
  { shard, requestId, fence }: HandedRequest,
): Promise<boolean> {
  const isFirst = fence === 1;
  while (hasReconnectedRecently(shard, isFirst ? REPLAYED_MS : undefined)) await pause(POLL_MS);
  return isFirst || (await requests.leaseLeftMs(shard, requestId)) === 0;
}

/** The text that an earlier delivery had sent. */
async function textSoFar(streams: StreamReader, { shard, requestId }: Delivery): Promise<string> {
  const entries = await streams.readFrom(shard, requestId, 1);
  return entries.flatMap(({ deltas }) => deltas.map(lineText)).join('');
}

/** Names that a provider keeps apart by account, and all tenants have one: its users, and its cached prompts. */
const NAMES = ['user', 'safety_identifier', 'prompt_cache_key'];

/** For the stages: a provider that blocks one tenant's user must not meet another tenant's of the same name. */
function withHiddenNames(envelope: RequestEnvelope, pseudonyms: ClaimDeps['pseudonyms']): RequestEnvelope {
  const { tenantId, request } = envelope;
  const { passed } = request;
  if (passed === undefined || !NAMES.some((name) => name in passed)) return envelope;
  const given = NAMES.filter((name) => name in passed);
  const hidden = given.map((name) => [name, pseudonyms.ofUser(tenantId, String(passed[name]))] as const);
  return { ...envelope, request: { ...request, passed: { ...passed, ...Object.fromEntries(hidden) } } };
}

/** Moderation reads exactly what a provider gets: texts, where the caller sent tokens. */
async function withTokensRead(envelope: RequestEnvelope): Promise<RequestEnvelope> {
  const { messages, task } = envelope.request;
  if (task?.kind !== 'embedding' || task.isTokens !== true) return envelope;
  const decode = await loadTokenDecoder();
  const read = messages.map((message) => ({ ...message, content: decode(JSON.parse(message.content) as number[]) }));
  return { ...envelope, request: { ...envelope.request, messages: read } };
}

/** This delivery generated no text: what there is of an answer came from an earlier one. */
async function answerSoFar(
  streams: StreamReader,
  delivery: Delivery,
  { sent, promptTokens }: ClaimedRequest,
): Promise<AnswerSoFar> {
  return {
    text: sent > 0 ? await textSoFar(streams, delivery) : '',
    unsent: [],
    asked: undefined,
    asks: [],
    promptTokens,
    provider: '',
    model: '',
    trace: { attempts: [] },
  };
}

/** Takes the request under a fence. Undefined: another delivery has it, or it has ended. */
export function createClaim(deps: ClaimDeps) {
  const { requests, streams, routing, openLease, pseudonyms, events, log } = deps;

  return async (handed: HandedRequest): Promise<Claimed | undefined> => {
    const { requestId, tenantId, fence, job } = handed;
    if (job?.claim === undefined && !(await mayClaim(deps, handed))) {
      log.debug('A job was handed out again and let go: the worker that has its request lives.', { requestId, fence });
      return undefined;
    }
    const claimed = await requests.claim(handed, job);
    if (claimed.kind === 'drop') {
      const reason = claimed.reason.replace(/^drop /, '');
      const message = 'A job was handed out again and let go: its request has an owner or an end.';
      log.debug(message, { requestId, fence, reason });
      return undefined;
    }
    const { delivery } = claimed;
    if (claimed.kind === 'unreadable') {
      const { error, retentionMs, request } = claimed;
      log.error('A request cannot be read and is ended.', { requestId, tenantId, error });
      // It cannot be priced either, so its hold is given back.
      const isEnded = await delivery.finish({
        status: 'failed',
        deltas: [],
        terminal: FAULT,
        costMicro: 0,
        retentionMs,
      });
      const how = { code: FAULT.error?.code, reason: 'its body cannot be read' };
      if (isEnded) events.emit('request.ended_early', request, how);
      return undefined;
    }
    const { seq, sent, now: claimedAt, remainingMs, held, terms } = claimed;
    const { tier, request } = claimed.envelope;
    const rates = claimed.rates ?? routing.current().tiers[tier]?.rates ?? DEFAULT_RATES[tier];
    const lease = openLease({ delivery, rates: holdRates(rates), maxTokens: request.maxTokens, remainingMs, held });
    if (claimed.cancelled) lease.stop('cancelled');
    const answer = await answerSoFar(streams, delivery, claimed);
    const interrupted = sent > 0 || handed.endOnly === true;
    const envelope = await withTokensRead(withHiddenNames(claimed.envelope, pseudonyms));
    const { onDisconnect } = terms;
    const run = { interrupted, delivery, job, envelope, seq, claimedAt, rates, onDisconnect, lease, answer };
    events.emit('request.claimed', run);
    return run;
  };
}
