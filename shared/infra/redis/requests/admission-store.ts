import type { Principal } from '../../../domain/keys/principal.ts';
import type { Rates } from '../../../domain/routing/routing.ts';
import { BATCH_LIMITS } from '../../../contracts/batches.ts';
import { encodeEntry } from '../../../contracts/events.ts';
import type { Terminal } from '../../../contracts/events.ts';
import type { Tier } from '../../../contracts/chat-request.ts';
import type { Endpoint, QueueName } from '../../../contracts/jobs.ts';
import type { IdempotencyName } from '../../../contracts/kept-answer.ts';
import { ADDRESS_FAILURES_PER_MINUTE, LOOKUPS_PER_MINUTE } from '../../../domain/limits/defaults.ts';
import { dayOf, monthOf } from '../../../domain/pricing/pricing.ts';
import { acceptedKeys } from '../keyspace.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import type { Script, ScriptReply } from '../scripts.ts';
import { inTime } from '../timing.ts';

/** Why the script let a request in or not; `load` asks for the tenant's book before another try,
 * `joined` found the request of an earlier call with the same Idempotency-Key. */
export type Verdict =
  | 'admitted'
  | 'void'
  | 'joined'
  | 'revoked'
  | 'suspended'
  | 'rpm'
  | 'throttle'
  | 'daily'
  | 'tpm'
  | 'test_tokens'
  | 'credits'
  | 'credits_in_flight'
  | 'budget'
  | 'budget_in_flight'
  | 'lane'
  | 'load';

/** The figures behind the rate-limit headers, as they are after the call. */
export interface WindowFigures {
  requests: number;
  requestsResetMs: number;
  tokens: number;
  tokensResetMs: number;
}

export interface Admission extends WindowFigures {
  verdict: Verdict;
  retryAfterMs: number;
  /** Tokens held for the request. */
  estimateTokens: number;
  /** Place in the order of acceptance within the shard. */
  seq: number;
  /** The server's clock, milliseconds since the epoch. */
  now: number;
  /** With `joined`: the request that runs under the Idempotency-Key, and its body's fingerprint. */
  joined?: { requestId: string; fingerprint: string };
}

/** What admission itself finds out about a call: its tier, what it may cost, where it waits. */
export interface AdmissionTerms {
  tier: Tier;
  queue: QueueName;
  rates: Rates;
  promptTokens: number;
  /** What the worker may count of the prompt at most; `promptTokens` unless told otherwise. */
  promptMostTokens?: number;
  maxTokens: number;
  metadataJson: string | undefined;
  /** The pseudonym of its entity, under which a deletion finds the request. */
  entityHash: string | undefined;
}

export interface AdmissionRequest extends AdmissionTerms {
  requestId: string;
  principal: Principal;
  endpoint: Endpoint;
  /** Channel of the ingress that waits for the answer; empty: nobody waits. */
  channel: string;
  /** Whether the request goes on when its last reader has gone. */
  onDisconnect: 'cancel' | 'finish';
  /** `name`: a hash over tenant, mode, route family and the caller's key; `fingerprint`: a hash over the body. */
  idempotency: IdempotencyName | undefined;
  /** Of a line: admitted only while `leaderId` leads the shard's batches and the batch is not being ended; else `void`. */
  batch?: { batchId: string; leaderId: string };
}

/** The lease of the process that sends the lines of a shard's batches. */
export const BATCH_LEASE = 'batches';

export interface AdmissionSettings {
  queueLimit: number;
  requestTimeoutMs: number;
  retentionMs: number;
}

export interface AdmissionStore {
  admit(request: AdmissionRequest, now: number): Promise<Admission>;
  /**
   * Takes an accepted request back; see void.lua for the states it returns. `last` ends the stream for whoever still
   * reads it. Safe to repeat.
   */
  void(requestId: string, owner: Pick<Principal, 'shard' | 'keyId' | 'tenantId'>, last?: Terminal): Promise<string>;
  /** Counts one request that is not a chat request; `take: false` only looks whether it would be refused. */
  count(requestId: string, principal: Principal, take: boolean, besides?: SecondWindow): Promise<Admission>;
  /** Counts one request that looks up, resumes or cancels another; these have a limit of their own. */
  countLookup(requestId: string, principal: Principal): Promise<Admission>;
  /** Counts one failed authentication of an address; `take: false` only looks. */
  countAddress(requestId: string, address: string, take: boolean): Promise<AddressCount>;
}

/** A limit of one endpoint beside the key's rpm; it refuses as `throttle`. */
interface SecondWindow {
  /** Names the window. */
  name: string;
  limit: number;
}

interface AddressCount {
  allowed: boolean;
  requests: number;
  requestsResetMs: number;
  retryAfterMs: number;
}

/** A tombstone outlives any command that could still be under way. */
const TOMBSTONE_MS = 3_600_000;

function numbersOf(reply: ScriptReply): { verdict: string; numbers: number[] } {
  if (!Array.isArray(reply)) throw new Error('A Redis script gave no list');
  return { verdict: String(reply[0]), numbers: reply.slice(1).map(Number) };
}

function toAdmission(reply: ScriptReply): Admission {
  const { verdict, numbers } = numbersOf(reply);
  const [requests = 0, requestsResetMs = 0, tokens = 0, tokensResetMs = 0, retryAfterMs = 0] = numbers;
  const [estimateTokens = 0, seq = 0, now = 0] = numbers.slice(5);
  const admission: Admission = {
    // The scripts admit.lua and count.lua know no other verdicts.
    verdict: verdict as Verdict,
    requests,
    requestsResetMs,
    tokens,
    tokensResetMs,
    retryAfterMs,
    estimateTokens,
    seq,
    now,
  };
  if (verdict !== 'joined' || !Array.isArray(reply)) return admission;
  const [requestId = '', fingerprint = ''] = String(reply[9]).split(' ');
  return { ...admission, joined: { requestId, fingerprint } };
}

export function createAdmissionStore(
  client: RedisClient,
  keyspace: Keyspace,
  settings: AdmissionSettings,
): AdmissionStore {
  const define = (name: string, parts: readonly string[]): Script => {
    const script = defineScript(client, name, parts);
    return (keys, args) => inTime(script(keys, args));
  };
  const admit = define('admit', ['window', 'account']);
  const take = define('count', ['window']);
  const takeAddress = define('count-address', ['window']);
  const takeBack = defineScript(client, 'void', ['window', 'account', 'emit', 'forget', 'drop']);
  const lifeMs = settings.requestTimeoutMs + settings.retentionMs + TOMBSTONE_MS;

  async function countIn(
    requestId: string,
    principal: Principal,
    log: 'rpm' | 'lookup',
    takeOne: boolean,
    besides?: SecondWindow,
  ): Promise<Admission> {
    const { shard, keyId, tenantId, limits } = principal;
    const keys = keyspace.shard(shard);
    const own = log === 'rpm' ? keys.keyRpm(keyId) : keys.lookups(keyId);
    const reply = await take(
      [
        keys.keyRpm(keyId),
        keys.tpmLog(keyId),
        keys.tpmWeights(keyId),
        keys.blocked(keyId),
        keys.blocked(tenantId),
        own,
        besides === undefined ? own : keys.throttle(besides.name, keyId),
      ],
      [requestId, log === 'rpm' ? limits.rpm : LOOKUPS_PER_MINUTE, takeOne ? 1 : 0, besides?.limit ?? ''],
    );
    return toAdmission(reply);
  }

  return {
    async admit(request, now) {
      const { requestId, principal, endpoint, queue, rates, promptTokens, maxTokens, channel, idempotency } = request;
      const { entityHash, batch } = request;
      const keys = keyspace.shard(principal.shard);
      const { keyId, tenantId, limits, mode } = principal;
      const live = mode === 'live';
      const throttle = endpoint === 'chat' ? limits.chatRpm : limits.streamRpm;
      const reply = await admit(
        [
          keys.record(requestId),
          keys.keyRpm(keyId),
          keys.throttle(endpoint, keyId),
          keys.tpmLog(keyId),
          keys.tpmWeights(keyId),
          keys.daily(keyId),
          keys.account(tenantId),
          keys.testAllowance(tenantId, dayOf(now)),
          keys.blocked(keyId),
          keys.blocked(tenantId),
          keys.inflight,
          keys.waiting(queue),
          keys.meanCompletion(keyId),
          keys.queueStatistics(queue),
          idempotency === undefined ? keys.record(requestId) : keys.idempotency(idempotency.name),
          entityHash === undefined ? keys.record(requestId) : keys.entityRequests(tenantId, entityHash),
          batch === undefined ? keys.record(requestId) : keys.lease(BATCH_LEASE),
          batch === undefined ? keys.record(requestId) : keys.closedBatch(batch.batchId),
        ],
        [
          requestId,
          limits.rpm,
          throttle,
          queue === 'batch' ? Math.max(1, Math.floor(limits.tpm * BATCH_LIMITS.tpmShare)) : limits.tpm,
          limits.dailyRequests,
          promptTokens,
          maxTokens,
          rates.promptMicro,
          rates.completionMicro,
          live ? 1 : 0,
          live ? (principal.monthlyTokenBudget ?? '') : principal.testDailyTokens,
          monthOf(now),
          settings.queueLimit,
          settings.requestTimeoutMs,
          channel,
          tenantId,
          keyId,
          lifeMs,
          request.tier,
          request.metadataJson ?? '',
          request.onDisconnect,
          idempotency?.fingerprint ?? '',
          queue,
          request.promptMostTokens ?? promptTokens,
          batch?.leaderId ?? '',
        ],
      );
      return toAdmission(reply);
    },

    async void(requestId, owner, last) {
      const state = await takeBack(acceptedKeys(keyspace, requestId, owner), [
        requestId,
        TOMBSTONE_MS,
        last === undefined ? '' : encodeEntry([], last),
      ]);
      return String(state);
    },

    count: (requestId, principal, takeOne, besides) => countIn(requestId, principal, 'rpm', takeOne, besides),
    countLookup: (requestId, principal) => countIn(requestId, principal, 'lookup', true),

    async countAddress(requestId, address, takeOne) {
      const reply = await takeAddress(
        // Addresses belong to no tenant: they live on the first shard.
        [keyspace.shard(0).address(address)],
        [requestId, ADDRESS_FAILURES_PER_MINUTE, takeOne ? 1 : 0],
      );
      const { verdict, numbers } = numbersOf(reply);
      const [requests = 0, requestsResetMs = 0, retryAfterMs = 0] = numbers;
      return { allowed: verdict === 'admitted', requests, requestsResetMs, retryAfterMs };
    },
  };
}
