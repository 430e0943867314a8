import type { Principal } from '../../../domain/keys/principal.ts';
import type { Rates } from '../../../domain/routing/routing.ts';
import { BATCH_LIMITS } from '../../../contracts/batches.ts';
import { encodeEntry } from '../../../contracts/events.ts';
import type { Terminal } from '../../../contracts/events.ts';
import type { Tier } from '../../../contracts/chat-request.ts';
import type { Endpoint, QueueName } from '../../../contracts/jobs.ts';
import type { IdempotencyName } from '../../../contracts/jobs.ts';
import { ADDRESS_FAILURES_PER_MINUTE, LOOKUPS_PER_MINUTE } from '../../../domain/limits/defaults.ts';
import { dayOf, monthOf } from '../../../domain/pricing/pricing.ts';
import { storedChatJob } from '../../queue/chat-job.ts';
import { acceptedKeys } from '../keyspace.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript, textsOf } from '../scripts.ts';
import type { Script } from '../scripts.ts';
import { createShardClocks, timely } from '../timely-script.ts';
import type { ShardClocks } from '../timely-script.ts';
import { inTime } from '../timing.ts';
import { numbersOf, readTime, toAdmission } from './admission-reply.ts';
import type { Admission } from './admission-reply.ts';
import { bodyLifeMs } from './line-store.ts';

export type { Admission, Verdict, WindowFigures } from './admission-reply.ts';

/** What admission itself finds out about a call: its tier, what it may cost, where it waits. */
export interface AdmissionTerms {
  tier: Tier;
  queue: QueueName;
  rates: Rates;
  promptTokens: number;
  /** What the worker may count of the prompt at most; `promptTokens` unless told otherwise. */
  promptMostTokens?: number;
  maxTokens: number;
  /** What it counts in the windows of tokens until it has ended; its estimate unless told otherwise. */
  countedTokens?: number | undefined;
  metadataJson: string | undefined;
  /** The pseudonym of its entity, under which a deletion finds the request. */
  entityHash: string | undefined;
  /** The envelope as JSON, but for `acceptedAt`: with it the request is in line at once, without it `enqueue` puts it there. */
  body?: string;
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
  /** How long Redis keeps its end; the service's own time unless told otherwise. Milliseconds. */
  retentionMs?: number;
  /** Of a request that is admitted again: when it was accepted first. Its charge counts to the budget of that month. */
  acceptedAt?: number;
  /** Of a line: admitted only while `leaderId` leads the shard's batches and the batch is not being ended; else `void`. */
  batch?: { batchId: string; leaderId: string };
}

/** The lease of the process that sends the lines of a shard's batches. */
export const BATCH_LEASE = 'batches';

export interface AdmissionSettings {
  queueLimit: number;
  requestTimeoutMs: number;
  retentionMs: number;
  /** What the process knows of the shards' clocks; nothing unless given. */
  clocks?: ShardClocks;
}

export interface AdmissionStore {
  /** `now` only counts until the shard's own clock is known. */
  admit(request: AdmissionRequest, now: number): Promise<Admission>;
  /**
   * Takes an accepted request back; see void.lua for the states it returns. `last` ends the stream for whoever still
   * reads it. Safe to repeat.
   */
  void(requestId: string, owner: RequestOwner, last?: Terminal): Promise<string>;
  /**
   * The same for one whose caller was told that it was not accepted: where a worker has it already it stops, and nobody
   * pays. `isRefused`: nothing of it is under way, so nothing is left where there is none.
   */
  disown(requestId: string, owner: RequestOwner, last: Terminal, isRefused?: boolean): Promise<string>;
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

type RequestOwner = Pick<Principal, 'shard' | 'keyId' | 'tenantId'>;

interface AddressCount {
  allowed: boolean;
  requests: number;
  requestsResetMs: number;
  retryAfterMs: number;
}

/** Of a lane one tenant's interactive requests fill at most so much (docs/spec/contract.md section 8, Tenant ceilings). */
const LANE_SHARE = 0.5;

/** As Lua reads a number that is not given. */
const NONE = -1;

/** A tombstone outlives any command that could still be under way. */
const TOMBSTONE_MS = 3_600_000;

export function createAdmissionStore(
  client: RedisClient,
  keyspace: Keyspace,
  settings: AdmissionSettings,
): AdmissionStore {
  const define = (name: string, parts: readonly string[]): Script => {
    const script = defineScript(client, name, parts);
    return (keys, args) => inTime(script(keys, args));
  };
  const admitNow = defineScript(client, 'admit', ['window', 'account', 'use', 'line', 'promise', 'refusal']);
  const clocks = settings.clocks ?? createShardClocks();
  const admit = timely(admitNow, readTime, clocks);
  const take = define('count', ['window', 'account', 'use']);
  const takeAddress = define('count-address', ['window']);
  const takeBack = defineScript(client, 'void', ['window', 'account', 'use', 'line', 'emit', 'forget', 'drop']);
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
        keys.keyUse(keyId),
        keys.blocked(keyId),
        keys.blocked(tenantId),
        own,
        besides === undefined ? own : keys.throttle(besides.name, keyId),
      ],
      [requestId, log === 'rpm' ? limits.rpm : LOOKUPS_PER_MINUTE, takeOne ? 1 : 0, besides?.limit ?? ''],
    );
    return toAdmission(reply);
  }

  async function voidAs(
    requestId: string,
    owner: RequestOwner,
    { last, isUnheard = false, isRefused = false }: { last?: Terminal; isUnheard?: boolean; isRefused?: boolean },
  ) {
    const { cancelled } = keyspace.shard(owner.shard);
    const entry = last === undefined ? '' : encodeEntry([], last);
    const state = await takeBack(
      [...acceptedKeys(keyspace, requestId, owner), cancelled],
      [requestId, TOMBSTONE_MS, entry, isUnheard ? 1 : 0, isRefused ? 1 : 0],
    );
    return String(state);
  }

  return {
    async admit(request, now) {
      const { requestId, principal, endpoint, queue, rates, promptTokens, maxTokens, channel, idempotency } = request;
      const { entityHash, batch, retentionMs } = request;
      const keys = keyspace.shard(principal.shard);
      const { keyId, tenantId, limits, mode, ceilings } = principal;
      const shareOf = (limit: number) =>
        queue === 'batch' ? Math.max(1, Math.floor(limit * BATCH_LIMITS.tpmShare)) : limit;
      const job = storedChatJob(queue, requestId, { tenantId });
      const live = mode === 'live';
      const mostTokens = request.promptMostTokens ?? promptTokens;
      const mostMicro = Math.round(mostTokens * rates.promptMicro + maxTokens * rates.completionMicro);
      const throttle = endpoint === 'chat' ? limits.chatRpm : limits.streamRpm;
      // Its charge counts to the month of its acceptance, which Redis notes: no ingress whose clock is ahead or behind may
      // look at another month's budget, or another day's allowance.
      const acceptedAt = clocks.at(principal.shard, performance.now()) ?? now;
      const reply = await admit(
        principal.shard,
        [
          keys.record(requestId),
          keys.keyRpm(keyId),
          keys.keyUse(keyId),
          keys.account(tenantId),
          keys.blocked(keyId),
          keys.blocked(tenantId),
          keys.inflight,
          keys.waiting(queue),
          keys.meanCompletion(keyId),
          keys.open(tenantId),
          keys.line(queue),
          keys.job(queue, requestId),
          keys.marker(queue),
          keys.queueMeta(queue),
          keys.body(requestId),
          // Those that not every request has, in the order in which admit.lua takes them.
          ...(throttle < limits.rpm && queue !== 'batch' ? [keys.throttle(endpoint, keyId)] : []),
          ...(limits.dailyRequests > 0 ? [keys.daily(keyId)] : []),
          ...(live ? [] : [keys.testAllowance(tenantId, dayOf(acceptedAt))]),
          ...(idempotency === undefined ? [] : [keys.idempotency(idempotency.name)]),
          ...(entityHash === undefined ? [] : [keys.entityRequests(tenantId, entityHash)]),
          ...(batch === undefined ? [] : [keys.lease(BATCH_LEASE), keys.closedBatch(batch.batchId)]),
        ],
        [
          requestId,
          JSON.stringify([
            ...[limits.rpm, throttle, shareOf(limits.tpm), limits.dailyRequests, promptTokens, maxTokens],
            ...[rates.promptMicro, rates.completionMicro, settings.queueLimit, settings.requestTimeoutMs],
            ...[principal.weight, ceilings.rpm ?? NONE, ceilings.tpm === null ? NONE : shareOf(ceilings.tpm)],
            ...[ceilings.inFlight ?? NONE, Math.max(1, Math.floor(settings.queueLimit * LANE_SHARE))],
            ...[entityHash === undefined ? 0 : 1, request.countedTokens ?? NONE],
          ]),
          textsOf([
            ...[live ? 1 : 0, live ? (principal.monthlyTokenBudget ?? '') : principal.testDailyTokens],
            ...[
              monthOf(request.acceptedAt ?? acceptedAt),
              channel,
              tenantId,
              keyId,
              lifeMs,
              request.tier,
              request.onDisconnect,
            ],
            ...[idempotency?.fingerprint ?? '', queue, batch?.leaderId ?? ''],
            `${rates.promptMicro} ${rates.completionMicro} ${mostTokens + maxTokens} ${mostMicro}`,
            ...[bodyLifeMs(settings.requestTimeoutMs), job.name],
            retentionMs === undefined || retentionMs === settings.retentionMs ? '' : retentionMs,
          ]),
          request.body?.slice(0, -1) ?? '',
          job.data,
          job.opts,
          request.metadataJson ?? '',
        ],
      );
      return toAdmission(reply);
    },

    void: (requestId, owner, last) => voidAs(requestId, owner, last === undefined ? {} : { last }),
    disown: (requestId, owner, last, isRefused = false) =>
      voidAs(requestId, owner, { last, isUnheard: true, isRefused }),

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
