import { setTimeout as pause } from 'node:timers/promises';

import { STORED_ANSWER_MS } from '../contracts/jobs.ts';
import type { RequestEnvelope } from '../contracts/jobs.ts';
import { dayOf, monthOf } from '../domain/pricing.ts';
import { seqAt } from '../domain/request-times.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { defineScript, textsOf } from '../redis/scripts.ts';
import type { Script, ScriptReply } from '../redis/scripts.ts';
import type { TimeLimit } from '../redis/time-limits.ts';
import { knownSeq, ratesText } from './delivery.ts';
import type { DeliveryRef, RecordSnapshot } from './delivery.ts';
import { BILLED } from './record-store.ts';

export interface RepairDeps {
  /** Repeats a lost claim under its name. Resolves with claim.lua's reply. */
  claim: (ref: DeliveryRef, owner: string) => Promise<ScriptReply>;
  /** Restores a running request that Redis lost. False: it may have ended. */
  restore: (ref: DeliveryRef) => Promise<boolean>;
  hasReconnectedRecently: (shard: number, withinMs: number) => boolean;
}

/** For this time after a reconnect, claims may be lost, or held by a worker that gives them back. */
const CLAIMS_BACK_MS = 1_500;
const RETRY_MS = 100;
/** Redis may lose claim and text again during a repair, but this does not try for ever. */
const TRIES_MAX = 20;

export type WriteWhole = ReturnType<typeof createRepairs>;

/** `known`: Redis's last sequence number, where it said so. Resolves with the found state. */
type Try<Reply> = (known: number | undefined) => Promise<Reply>;

/**
 * Repairs a delivery's writes in a Redis that came back without its last ones. The reply of append, renew and finish
 * decides, and the write follows again:
 *
 * | found | Redis has lost | action |
 * | --- | --- | --- |
 * | `missing` | the request | `restore`: write it again, as running |
 * | `accepted` | the claim | `reclaim`: claim again, under the same name |
 * | `behind n` | text after n | send it with the write |
 * | `superseded` | perhaps the claim | wait, for 1.5 s after the reconnect |
 *
 * The last row is for calls that ioredis repeats after a reconnect: one that takes jobs then claims running requests
 * for another worker, which gives them back at once (job-source.ts). Without patience a delivery that writes in between
 * would end its stream although its worker lives. A failed repair waits likewise; an end that finds nothing is replayed
 * in another way.
 */
export function createRepairs({ claim, restore, hasReconnectedRecently }: RepairDeps) {
  async function reclaim(ref: DeliveryRef, owner: string): Promise<boolean> {
    const reply = await claim(ref, owner);
    return Array.isArray(reply) && reply[0] === 'run';
  }

  /** False: the request has ended, or another delivery has it. */
  async function repair(ref: DeliveryRef, found: unknown): Promise<boolean> {
    if (ref.owner === undefined) return false;
    if (found === 'missing') return restore(ref);
    return found === 'accepted' && reclaim(ref, ref.owner);
  }

  const isLost = (found: unknown) => found === 'missing' || found === 'accepted' || found === 'superseded';

  /** `waits` false: does not wait for a request that Redis lost completely. Resolves with the last reply. */
  return async function writeWhole<Reply>(
    ref: DeliveryRef,
    write: Try<Reply>,
    foundIn: (reply: Reply) => ScriptReply | undefined,
    waits = true,
  ): Promise<Reply> {
    let known: number | undefined;
    for (let tries = 1; ; tries += 1) {
      const reply = await write(known);
      const found = foundIn(reply);
      const behind = knownSeq(found);
      if (tries === TRIES_MAX || (behind === undefined && !isLost(found))) return reply;
      known = behind ?? known;
      if (behind !== undefined || (await repair(ref, found))) continue;
      if ((found === 'missing' && !waits) || !hasReconnectedRecently(ref.shard, CLAIMS_BACK_MS)) return reply;
      await pause(RETRY_MS);
    }
  };
}

/** Longer than two servers' clocks differ. */
const SLACK_MS = 60_000;

function fieldsOf(keyspace: Keyspace, { shard, tenantId, keyId, queue }: DeliveryRef, facts: RecordSnapshot) {
  const { tier, name, mode, acceptedAt, startedAt, seq, deadline, metadataJson, rates, terms } = facts;
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
    ...(rates === undefined ? {} : { rates: ratesText(rates) }),
    ...Object.fromEntries(Object.entries(terms).filter(([, value]) => value !== '')),
    ...(queue === 'batch' ? { queue: queue } : {}),
    ...(mode === 'test' ? { allowance } : {}),
    ...(name === undefined ? {} : { model: name }),
    ...(metadataJson === undefined ? {} : { metadata: metadataJson }),
  };
}

/** restore-request.lua makes the request known by these keys, with these fields of the record. */
export function toPutBack(keyspace: Keyspace, ref: DeliveryRef, facts: RecordSnapshot) {
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

/** Keys and arguments of restore-running.lua. */
export function toPutBackRunning(
  keyspace: Keyspace,
  ref: DeliveryRef,
  {
    facts,
    envelope,
    leaseMs,
    awayMs,
  }: { facts: RecordSnapshot; envelope: RequestEnvelope; leaseMs: number; awayMs: number },
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
      // Names are for the reader; restore-running.lua takes the values in this order.
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

/** `ended`: not as `failed`; `bodiless`: accepted, but Redis has lost the body; `missing`: unknown to Redis. */
type Presence = 'open' | 'ended' | 'failed' | 'bodiless' | 'missing';

/** The requests that Redis lacks can be recovered. */
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
     * Restores a readmitted request's first time of acceptance, which its caller knows, and its place in that order:
     * turns are stored in it, and a deletion takes earlier requests. Only while the request waits in Redis. Safe to
     * repeat.
     */
    async setAcceptedAt(shard: number, requestId: string, acceptedAt: number): Promise<void> {
      const record = keyspace.shard(shard).record(requestId);
      await limit(setAcceptance([record], [acceptedAt, seqAt(acceptedAt)]));
    },
  };
}
