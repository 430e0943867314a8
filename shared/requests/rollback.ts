import { setTimeout as pause } from 'node:timers/promises';

import type { RequestEnvelope } from '../contracts/jobs.ts';
import { STORED_ANSWER_MS } from '../contracts/request-envelope.ts';
import { dayOf, monthOf } from '../domain/pricing.ts';
import { seqAt } from '../domain/request-times.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { defineScript, textsOf } from '../redis/scripts.ts';
import type { Script, ScriptReply } from '../redis/scripts.ts';
import type { TimeLimit } from '../redis/time-limits.ts';
import type { Append } from './append-batch.ts';
import { knownSeq } from './delivery.ts';
import type { DeliveryRef, Ending, RecordFacts, WriteOutcome } from './delivery.ts';
import { BILLED } from './record-store.ts';

export interface AppendMore {
  /** Tokens of what the provider was asked, in case another process has to end the request. */
  promptTokens?: number;
  /** Increments that this delivery appended before, in case Redis has lost some. */
  earlier?: readonly string[];
}

/** The writes of a delivery to a Redis that may have come back without its last ones. */
export interface RollbackWrites {
  /** Appends text, and what Redis has lost of the text before. */
  append(ref: DeliveryRef, lastSeq: number, deltas: readonly string[], more: AppendMore): Promise<WriteOutcome>;
  /** Ends the request in the same way. Resolves with what finish.lua says. */
  end(ref: DeliveryRef, sentSeq: number, ending: Ending): Promise<ScriptReply>;
  /** Renews with `send`. Resolves with what renew.lua says. */
  renew(ref: DeliveryRef, send: () => Promise<readonly ScriptReply[]>): Promise<readonly ScriptReply[]>;
}

export interface RollbackWritesDeps {
  /** One call of each script. */
  append: (text: Append) => Promise<ScriptReply>;
  end: (ref: DeliveryRef, sentSeq: number, ending: Ending) => Promise<ScriptReply>;
  /** Repeats a claim that Redis has lost, under its name. Resolves with what claim.lua says. */
  claim: (ref: DeliveryRef, owner: string) => Promise<ScriptReply>;
  /** Puts a running request back that Redis has lost. False: it may have ended. */
  putBack: (ref: DeliveryRef) => Promise<boolean>;
  hasReconnectedRecently: (shard: number, withinMs: number) => boolean;
}

/** Redis may come back without claim and text, and again while these are repaired. */
const REPAIRS_MAX = 5;
/** After a reconnect claims may be lost, or in the hands of a worker that gives them back, for this time. */
const CLAIMS_BACK_MS = 1_500;
const AGAIN_MS = 100;
/** The master may have gone again, so this does not try for ever. */
const TRIES_MAX = 20;

const isSuperseded = (outcome: unknown) => outcome === 'superseded';
/** Redis has lost the claim, or the whole request. */
const isLost = (outcome: unknown) => outcome === 'accepted' || outcome === 'missing';

/**
 * Repeats a write that was refused because another delivery owns the request, for a moment after a reconnect. Then ioredis
 * repeats calls that were under way. If Redis has lost the claims of running requests, a repeated call that takes jobs
 * claims them for another worker, which gives them back at once (job-source.ts). Without patience a delivery that writes in
 * between would be refused, and its stream would end although its worker lives.
 */
function createRetryAfterReconnect(hasReconnectedRecently: RollbackWritesDeps['hasReconnectedRecently']) {
  return async function retryAfterReconnect<Outcome>(
    { shard }: DeliveryRef,
    write: () => Promise<Outcome>,
    isRefused: (outcome: Outcome) => boolean,
  ): Promise<Outcome> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await write();
      if (!isRefused(outcome) || tries === TRIES_MAX || !hasReconnectedRecently(shard, CLAIMS_BACK_MS)) return outcome;
      await pause(AGAIN_MS);
    }
  };
}

export function createRollbackWrites(deps: RollbackWritesDeps): RollbackWrites {
  const { append, end, claim, putBack, hasReconnectedRecently } = deps;
  const retryAfterReconnect = createRetryAfterReconnect(hasReconnectedRecently);

  /** Gets a request back of which Redis has lost this much. False: another delivery has it, or it has ended. */
  async function ownAgain(ref: DeliveryRef, lost: unknown): Promise<boolean> {
    if (ref.owner === undefined) return false;
    if (lost === 'missing') return putBack(ref);
    const reply = await claim(ref, ref.owner);
    return Array.isArray(reply) && reply[0] === 'run';
  }

  /** Ends a request, with the text that Redis has lost. */
  async function endWhole(ref: DeliveryRef, sentSeq: number, ending: Ending): Promise<ScriptReply> {
    const { earlier = [], deltas } = ending;
    let [follows, missing] = [sentSeq, deltas];
    for (let tries = 0; tries < REPAIRS_MAX; tries += 1) {
      const outcome = await end(ref, follows, { ...ending, deltas: missing });
      if (isLost(outcome)) {
        if (!(await ownAgain(ref, outcome))) return outcome === 'missing' ? outcome : 'superseded';
        continue;
      }
      const known = knownSeq(outcome);
      if (known === undefined) return outcome;
      // Text of earlier deliveries is not known here, so it is not repeated.
      missing = [...earlier, ...deltas].slice(Math.max(0, known - (sentSeq - earlier.length)));
      follows = known;
    }
    return 'superseded';
  }

  /** Appends text, with the text that Redis has lost. */
  async function appendWhole(
    ref: DeliveryRef,
    lastSeq: number,
    deltas: readonly string[],
    { promptTokens = 0, earlier = [] }: AppendMore,
  ): Promise<WriteOutcome> {
    const first = lastSeq - deltas.length - earlier.length;
    let missing = deltas;
    for (let tries = 0; tries < REPAIRS_MAX; tries += 1) {
      const outcome = await append({ ref, lastSeq, deltas: missing, promptTokens });
      if (isLost(outcome)) {
        if (!(await ownAgain(ref, outcome))) return 'superseded';
        continue;
      }
      const known = knownSeq(outcome);
      // append.lua returns no other outcome.
      if (known === undefined) return outcome as WriteOutcome;
      if (known < first) return 'superseded';
      missing = [...earlier, ...deltas].slice(known - first);
    }
    return 'superseded';
  }

  return {
    append: (...call) => retryAfterReconnect(call[0], () => appendWhole(...call), isSuperseded),
    end: (...call) => retryAfterReconnect(call[0], () => endWhole(...call), isSuperseded),
    renew: (ref, send) =>
      retryAfterReconnect(
        ref,
        async () => {
          const reply = await send();
          return isLost(reply[0]) && (await ownAgain(ref, reply[0])) ? send() : reply;
        },
        ([found]) => isSuperseded(found) || isLost(found),
      ),
  };
}

/** More than the clocks of two servers differ. */
const SLACK_MS = 60_000;

function fieldsOf(keyspace: Keyspace, { shard, tenantId, keyId, queue }: DeliveryRef, facts: RecordFacts) {
  const { tier, mode, acceptedAt, startedAt, seq, deadline, metadataJson, rates, terms } = facts;
  const allowance = keyspace.shard(shard).testAllowance(tenantId, dayOf(acceptedAt));
  return {
    tenant: tenantId,
    key: keyId,
    billed: BILLED[mode],
    tier,
    month: monthOf(acceptedAt),
    acceptedAt,
    startedAt,
    seq,
    deadline,
    ...(rates === undefined ? {} : { rates: `${rates.promptMicro} ${rates.completionMicro}` }),
    ...Object.fromEntries(Object.entries(terms).filter(([, value]) => value !== '')),
    ...(queue === 'batch' ? { lane: queue } : {}),
    ...(mode === 'test' ? { allowance } : {}),
    ...(metadataJson === undefined ? {} : { metadata: metadataJson }),
  };
}

/** The keys by which put-back.lua makes the request known again, and what the record should contain. */
export function toPutBack(keyspace: Keyspace, ref: DeliveryRef, facts: RecordFacts) {
  const { shard, requestId, tenantId, keyId } = ref;
  const { endpoint, idempotency, entityHash, acceptedAt } = facts;
  const keys = keyspace.shard(shard);
  const record = keys.record(requestId);
  return {
    names: [
      idempotency === undefined ? record : keys.idempotency(idempotency.name),
      entityHash === undefined ? record : keys.entityRequests(tenantId, entityHash),
      keys.keyRpm(keyId),
      keys.throttle(endpoint, keyId),
      keys.daily(keyId),
      keys.account(tenantId),
    ],
    known: [
      idempotency === undefined ? '' : `${requestId} ${idempotency.fingerprint} ${tenantId}`,
      STORED_ANSWER_MS,
      acceptedAt,
      ...Object.entries(fieldsOf(keyspace, ref, facts)).flat(),
    ],
  };
}

/** Keys and arguments of put-back-running.lua. */
export function toPutBackRunning(
  keyspace: Keyspace,
  ref: DeliveryRef,
  {
    facts,
    envelope,
    leaseMs,
    awayMs,
  }: { facts: RecordFacts; envelope: RequestEnvelope; leaseMs: number; awayMs: number },
): Parameters<Script> {
  const { shard, requestId, tenantId, fence, owner = '', queue } = ref;
  const { retentionMs } = envelope;
  const { acceptedAt, startedAt: claimedAt, seq, deadline } = facts;
  const keys = keyspace.shard(shard);
  const { names, known } = toPutBack(keyspace, ref, facts);
  const lifeMs = Math.max(0, deadline - acceptedAt) + retentionMs + SLACK_MS;
  return [
    [
      keys.record(requestId),
      keys.stream(requestId),
      keys.answer(requestId),
      ...names,
      keys.body(requestId),
      keys.inflight,
      keys.open(tenantId),
      keys.incarnation,
      keys.ended(requestId),
    ],
    [
      // Named for the reader; put-back-running.lua takes the values in this order.
      textsOf(
        Object.values({
          requestId,
          fence,
          owner,
          leaseMs,
          lifeMs,
          retentionMs,
          queue,
          acceptedAt,
          seq,
          awayMs,
          claimedAt,
        }),
      ),
      JSON.stringify(envelope),
      ...known,
    ],
  ];
}

/**
 * `open`: it has not ended; `ended`: it has; `failed`: with an error; `bodiless`: it is accepted, but Redis has lost its body;
 * `missing`: Redis does not know it.
 */
type Presence = 'open' | 'ended' | 'failed' | 'bodiless' | 'missing';

/** Tells which requests Redis still has, so that the others can be recovered. */
export type RequestPresence = ReturnType<typeof createRequestPresence>;

export function createRequestPresence(client: RedisClient, keyspace: Keyspace, limit: TimeLimit) {
  const setAcceptance = defineScript(client, 'accepted-at');

  async function lookAt(shard: number, requestId: string): Promise<Presence> {
    const keys = keyspace.shard(shard);
    const [values, body] = await Promise.all([
      client.hmget(keys.record(requestId), 'state', 'status'),
      client.exists(keys.body(requestId)),
    ]);
    const [state = null, status] = values;
    if (state === null) return (await client.exists(keys.ended(requestId))) === 1 ? 'ended' : 'missing';
    if (state !== 'accepted' && state !== 'running') return status === 'failed' ? 'failed' : 'ended';
    return state === 'accepted' && body === 0 ? 'bodiless' : 'open';
  }

  return {
    look: (shard: number, requestIds: readonly string[]): Promise<Presence[]> =>
      limit(Promise.all(requestIds.map((requestId) => lookAt(shard, requestId)))),
    /**
     * Gives a request that was admitted again the time of its first acceptance, which its caller knows, and its place in the
     * order of then: turns are stored in that order, and a deletion takes what was accepted before it. One that does not wait
     * in Redis stays as it is. Safe to repeat.
     */
    async setAcceptedAt(shard: number, requestId: string, acceptedAt: number): Promise<void> {
      const record = keyspace.shard(shard).record(requestId);
      await limit(setAcceptance([record], [acceptedAt, seqAt(acceptedAt)]));
    },
  };
}
