import { encodeEntry } from '../contracts/events.ts';
import type { Terminal } from '../contracts/events.ts';
import type { OnEarlyEnd } from '../contracts/settlement.ts';
import {
  ADDRESS_FAILURES_PER_MINUTE,
  LOOKUPS_PER_MINUTE,
  TENANT_LOOKUPS_PER_MINUTE,
  tenantCallsPerMinute,
} from '../contracts/tenant-fields.ts';
import { flagOf } from '../domain/principal.ts';
import type { Principal } from '../domain/principal.ts';
import type { RedisClient } from '../redis/connection.ts';
import { createShardClocks, withDeadline, defineScript, defineTimedScript } from '../redis/scripts.ts';
import type { ShardClocks, TimedReply, ScriptReply } from '../redis/scripts.ts';
import { acceptedKeys } from '../redis/keyspace.ts';
import type { Keyspace, RequestOwner } from '../redis/keyspace.ts';
import { readMark } from './tenant-move.ts';
import { toAdmitCall } from './admit-arguments.ts';
import type { AdmissionRequest } from './admit-arguments.ts';
import { TOMBSTONE_MS, endedEarly } from './record-store.ts';

/**
 * `load`: Redis lacks the tenant's balance; publish it and try again. `joined`: an earlier call with the same
 * Idempotency-Key made the request. `changed`: the key allows less than when it was looked up. `moved`, `moving`: the
 * tenant is on another shard, or on its way. `tenant_calls`: all keys of the tenant make too many calls beside chat.
 * `queue`, `queue_share`: the queue, or this tenant's part of it, is full. Others name what refused the request.
 */
export type Verdict =
  | 'admitted'
  | 'void'
  | 'joined'
  | 'revoked'
  | 'changed'
  | 'suspended'
  | 'rpm'
  | 'throttle'
  | 'daily'
  | 'tpm'
  | 'test_tokens'
  | 'test_tokens_in_flight'
  | 'credits'
  | 'credits_in_flight'
  | 'budget'
  | 'budget_in_flight'
  | 'queue'
  | 'queue_share'
  | 'tenant_calls'
  | 'tenant_rpm'
  | 'tenant_tpm'
  | 'unpaid'
  | 'max_in_flight'
  | 'bodies'
  | 'moved'
  | 'moving'
  | 'balance_missing';

export interface RequestFigures {
  requests: number;
  requestsResetMs: number;
}

/** For the rate-limit headers, after the call. */
export interface WindowFigures extends RequestFigures {
  tokens: number;
  tokensResetMs: number;
}

export interface Admission extends WindowFigures {
  verdict: Verdict;
  retryAfterMs: number;
  estimateTokens: number;
  /** Place in the order of acceptance within the shard. */
  seq: number;
  /** Milliseconds since the epoch by the server's clock. */
  now: number;
  /** With `joined`: the request under the Idempotency-Key, and its body's fingerprint. */
  joined?: { requestId: string; fingerprint: string };
  /** With `moved`: the tenant's shard. */
  movedTo?: number;
}

/** A move takes some seconds. */
const MOVING_RETRY_MS = 2_000;

/** Text becomes NaN. Throws on a reply that is no list. */
function numbersOf(reply: ScriptReply): { verdict: string; numbers: number[] } {
  if (!Array.isArray(reply)) throw new Error('A Redis script gave no list');
  return { verdict: String(reply[0]), numbers: reply.slice(1).map(Number) };
}

/** Position among a reply's numbers; the verdict `late` has only this number. */
const NOW_AT = 7;

/** Milliseconds since the epoch, by the server's clock. */
function readTime(reply: ScriptReply): TimedReply {
  const { verdict, numbers } = numbersOf(reply);
  const isLate = verdict === 'deadline_passed';
  return { isLate, now: numbers[isLate ? 0 : NOW_AT] ?? 0 };
}

function toAdmission(reply: ScriptReply): Admission {
  const { verdict, numbers } = numbersOf(reply);
  const [
    requests = 0,
    requestsResetMs = 0,
    tokens = 0,
    tokensResetMs = 0,
    retryAfterMs = 0,
    estimateTokens = 0,
    seq = 0,
    now = 0,
  ] = numbers;
  const figures = { requests, requestsResetMs, tokens, tokensResetMs, retryAfterMs, estimateTokens, seq, now };
  // `elsewhere`, the only other verdict of admit.lua and count.lua, is read below.
  const admission: Admission = { ...figures, verdict: verdict as Verdict };
  const text = Array.isArray(reply) ? String(reply[9]) : '';
  if (verdict === 'moved') {
    const movedTo = readMark(text);
    return movedTo === undefined
      ? { ...admission, verdict: 'moving', retryAfterMs: MOVING_RETRY_MS }
      : { ...admission, verdict: 'moved', retryAfterMs: 1_000, movedTo };
  }
  if (verdict !== 'joined') return admission;
  const [requestId = '', fingerprint = ''] = text.split(' ');
  return { ...admission, joined: { requestId, fingerprint } };
}

export interface AdmissionSettings {
  queueLimit: number;
  requestTimeoutMs: number;
  retentionMs: number;
  onEarlyEnd?: OnEarlyEnd;
  /** Absent: nothing is known yet. */
  clocks?: ShardClocks;
}

export type AdmissionStore = ReturnType<typeof createAdmissionStore>;

/** An endpoint's limit, besides the key's rpm, of a key or of all keys of a tenant. Its verdict is `throttle`. */
interface SecondWindow {
  name: string;
  limit: number;
  of: 'key' | 'tenant';
}

interface AddressCount extends RequestFigures {
  allowed: boolean;
  retryAfterMs: number;
}

/** A chat request counts in its key's window alone, because tenants have other ceilings for those. */
export type Takes = 'of tenant' | 'of key' | 'nothing';

function createCount(client: RedisClient, keyspace: Keyspace) {
  const take = defineTimedScript(client, 'count');

  return async function countIn(
    requestId: string,
    principal: Principal,
    log: 'rpm' | 'lookup',
    takes: Takes,
    besides?: SecondWindow,
  ): Promise<Admission> {
    const { shard, keyId, tenantId, limits } = principal;
    const keys = keyspace.shard(shard);
    const logOf = log === 'rpm' ? keys.keyRpm : keys.lookups;
    const own = logOf(keyId);
    const ofTenant = log === 'rpm' ? tenantCallsPerMinute(limits) : TENANT_LOOKUPS_PER_MINUTE;
    const reply = await take(
      [
        keys.keyRpm(keyId),
        keys.tokenWindow(keyId),
        keys.blocked(flagOf(principal)),
        keys.blocked(tenantId),
        own,
        besides === undefined ? own : keys.throttle(besides.name, besides.of === 'tenant' ? tenantId : keyId),
        logOf(tenantId),
      ],
      [
        requestId,
        log === 'rpm' ? limits.rpm : LOOKUPS_PER_MINUTE,
        takes === 'nothing' ? 0 : 1,
        besides?.limit ?? '',
        takes === 'of tenant' ? ofTenant : '',
      ],
    );
    return toAdmission(reply);
  };
}

interface VoidOptions {
  /** Ends the stream for its readers. */
  last?: Terminal;
  /** The reason, for the list of ended requests. */
  how?: Parameters<OnEarlyEnd>[1] | undefined;
  isDisowned?: boolean;
  isRefused?: boolean;
  isForGood?: boolean;
}

/** See void.lua. */
function createVoid(client: RedisClient, keyspace: Keyspace, onEarlyEnd: OnEarlyEnd | undefined) {
  const voidLater = defineScript(client, 'void');

  return async function voidAs(requestId: string, owner: RequestOwner, { last, how, ...is }: VoidOptions) {
    const { isDisowned = false, isRefused = false, isForGood = false } = is;
    const { cancelled } = keyspace.shard(owner.shard);
    const entry = last === undefined ? '' : encodeEntry([], last);
    const reply = await voidLater(
      [...acceptedKeys(keyspace, requestId, owner), cancelled],
      [requestId, TOMBSTONE_MS, entry, isDisowned ? 1 : 0, isRefused ? 1 : 0, isForGood ? 1 : 0, owner.tenantId],
    );
    const because = how ?? { code: last?.error?.code, reason: 'taken back before a worker had it' };
    return endedEarly(reply, { requestId, ...owner }, because, onEarlyEnd);
  };
}

function createCountAddress(client: RedisClient, keyspace: Keyspace) {
  const take = defineTimedScript(client, 'count-address');
  return async (requestId: string, address: string): Promise<AddressCount> => {
    // Addresses belong to no tenant: they live on the first shard.
    const reply = await take([keyspace.shard(0).address(address)], [requestId, ADDRESS_FAILURES_PER_MINUTE]);
    const { verdict, numbers } = numbersOf(reply);
    const [requests = 0, requestsResetMs = 0, retryAfterMs = 0] = numbers;
    return { allowed: verdict === 'admitted', requests, requestsResetMs, retryAfterMs };
  };
}

export function createAdmissionStore(client: RedisClient, keyspace: Keyspace, settings: AdmissionSettings) {
  const admitNow = defineScript(client, 'admit');
  const clocks = settings.clocks ?? createShardClocks();
  const admit = withDeadline(admitNow, readTime, clocks);
  const countIn = createCount(client, keyspace);
  const voidAs = createVoid(client, keyspace, settings.onEarlyEnd);
  const { queueLimit, requestTimeoutMs, retentionMs } = settings;
  const recordLifeMs = requestTimeoutMs + retentionMs + TOMBSTONE_MS;
  const admitSettings = { queueLimit, requestTimeoutMs, retentionMs, recordLifeMs };

  return {
    /** One script decides. `now` (ms since the epoch) is used until the shard's own clock is known. */
    async admit(request: AdmissionRequest, now: number): Promise<Admission> {
      const { shard } = request.principal;
      const acceptedAt = clocks.at(shard, performance.now()) ?? now;
      return toAdmission(await admit(shard, ...toAdmitCall(keyspace, request, acceptedAt, admitSettings)));
    },

    /** Returns a state of void.lua. Safe to repeat. */
    void: (requestId: string, owner: RequestOwner, last?: Terminal, how?: VoidOptions['how']): Promise<string> =>
      voidAs(requestId, owner, { ...(last && { last }), how }),
    /**
     * Like `void`, but the caller gets an error unless a worker has the request: once voided, it may not be restored. A
     * request that another call has joined stays.
     */
    voidPermanently: (requestId: string, owner: RequestOwner, last: Terminal): Promise<string> =>
      voidAs(requestId, owner, { last, isForGood: true }),
    /**
     * Like `void`, for a caller that got 503: a worker that has the request stops, and nobody pays. `isRefused`: no
     * admission is under way, so a missing record needs no tombstone.
     */
    voidRefused: (
      requestId: string,
      owner: RequestOwner,
      last: Terminal,
      isRefused: boolean = false,
    ): Promise<string> => voidAs(requestId, owner, { last, isDisowned: true, isRefused }),

    /** Counts, or only checks for a refusal, without admission. */
    count: (requestId: string, principal: Principal, takes: Takes, besides?: SecondWindow): Promise<Admission> =>
      countIn(requestId, principal, 'rpm', takes, besides),
    /** Looking up, resuming and cancelling share a limit of their own. */
    countLookup: (requestId: string, principal: Principal): Promise<Admission> =>
      countIn(requestId, principal, 'lookup', 'of tenant'),

    countAddress: createCountAddress(client, keyspace),
  };
}
