import type { Tier } from '../contracts/chat-request.ts';
import { encodeEntry, eventsOf } from '../contracts/events.ts';
import type { Terminal } from '../contracts/events.ts';
import { QUEUE_NAMES } from '../contracts/jobs.ts';
import type { ChatRoute } from '../contracts/jobs.ts';
import type { OnEarlyEnd } from '../contracts/settlement.ts';
import type { SearchedSpace } from '../contracts/space.ts';
import type { Principal } from '../domain/principal.ts';
import type { RedisClient } from '../redis/connection.ts';
import { acceptedKeys } from '../redis/keyspace.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import type { ReplayLog } from '../redis/redis-return.ts';
import { defineTimedScript } from '../redis/scripts.ts';
import type { ScriptReply } from '../redis/scripts.ts';
import { inTime, serverTimeUs } from '../redis/time-limits.ts';

/** Replaces a body's fingerprint once nothing of the request is kept (answers.lua). */
export const ERASED_FINGERPRINT = '-';

type RequestState = 'accepted' | 'running' | 'done';

/** `ended`: the stream is whole. `unknown`: the record has expired, or is lost and its worker may restore it. */
type ReadState = 'open' | 'ended' | 'unknown';

/** Every ingress may read these fields. Times are milliseconds since the epoch. */
export interface RequestRecord {
  requestId: string;
  state: RequestState;
  /** Set once it is done. */
  status: 'completed' | 'failed' | 'cancelled' | undefined;
  tier: Tier;
  /** The published name that the caller asked for. */
  name?: string;
  metadataJson?: string;
  sentSeq: number;
  acceptedAt: number;
  startedAt?: number;
  firstTokenAt?: number;
  finishedAt?: number;
  /** Ended, with nothing of the answer kept. */
  isGone: boolean;
}

export interface QueuePlace {
  /** Among the tenant's own, from 1. */
  position: number;
  /** Expected, until a worker takes the request. */
  waitMs: number;
}

/** The ingress's side: look-ups, attaching readers, cancelling. Never writes a worker's events. */
export type RecordStore = ReturnType<typeof createRecordStore>;

/** The field of records; a record without it is live. Empty: either mode. */
export const BILLED: Readonly<Record<SearchedSpace['mode'], string>> = { live: '1', test: '0', any: '' };

/** A tombstone stays longer than any command may be on its way to Redis. */
export const TOMBSTONE_MS = 3_600_000;

/** The same as in answers.lua. */
const READER_LEASE_MS = 15_000;

const CANCELLED: Terminal = { finishReason: 'cancelled', usage: { promptTokens: 0, completionTokens: 0 } };

function timeOf(value: string | undefined): number | undefined {
  return value === undefined || value === '' ? undefined : Number(value);
}

function optional<K extends string, V>(name: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined ? {} : ({ [name]: value } as { [key in K]: V });
}

function toRecord(requestId: string, values: readonly string[]): RequestRecord {
  const [, state, status, tier, metadata, sent, accepted, started, firstToken, finished, , gone, name] = values;
  return {
    requestId,
    // Only this folder's scripts write states.
    state: state as RequestState,
    status: status === '' ? undefined : (status as RequestRecord['status']),
    tier: tier as Tier,
    sentSeq: Number(sent),
    acceptedAt: Number(accepted),
    isGone: gone === '1',
    ...(metadata === undefined || metadata === '' ? {} : { metadataJson: metadata }),
    ...(name === undefined || name === '' ? {} : { name }),
    ...optional('startedAt', timeOf(started)),
    ...optional('firstTokenAt', timeOf(firstToken)),
    ...optional('finishedAt', timeOf(finished)),
  };
}

/** Reports a request that void.lua or cancel.lua has ended. Returns the state that was found. */
export function endedEarly(
  reply: ScriptReply,
  { requestId, tenantId, keyId }: { requestId: string; tenantId: string; keyId: string },
  how: Parameters<OnEarlyEnd>[1],
  onEarlyEnd: OnEarlyEnd | undefined,
): string {
  if (!Array.isArray(reply)) return String(reply);
  const [state, endpoint, tier, billed, acceptedAt] = reply.map(String);
  const mode = billed === BILLED.test ? 'test' : 'live';
  const known = { requestId, tenantId, keyId, mode, acceptedAt: Number(acceptedAt) } as const;
  // Written by admit.lua only.
  onEarlyEnd?.({ ...known, endpoint: endpoint as ChatRoute, tier: tier as Tier }, how);
  return state ?? '';
}

export interface RecordStoreSettings {
  onEarlyEnd?: OnEarlyEnd | undefined;
  retentionMs: number;
  /** Absent: a cancelled request may run if Redis comes back without that. */
  replayLog?: ReplayLog;
}

/** Undefined: the request does not wait. */
function createPlace(client: RedisClient, keyspace: Keyspace) {
  const place = defineTimedScript(client, 'place');
  return async (
    { shard, tenantId }: Pick<Principal, 'shard' | 'tenantId'>,
    requestId: string,
  ): Promise<QueuePlace | undefined> => {
    const keys = keyspace.shard(shard);
    const queues = QUEUE_NAMES.flatMap((queue) => [
      keys.prioritized(queue),
      keys.wait(queue),
      keys.queueStatistics(queue),
    ]);
    const reply = await place(
      [keys.record(requestId), keys.open(tenantId), keys.account(tenantId), ...queues],
      [requestId],
    );
    return Array.isArray(reply) ? { position: Number(reply[0]), waitMs: Number(reply[1]) } : undefined;
  };
}

async function wipe(
  client: RedisClient,
  keys: ReturnType<Keyspace['shard']>,
  requestId: string,
  channel: string,
): Promise<void> {
  const [gone, channels] = await inTime(client.hmget(keys.record(requestId), 'gone', 'channels'));
  if (gone !== '1' || channels !== channel) return;
  await inTime(Promise.all([client.unlink(keys.stream(requestId)), client.unlink(keys.answer(requestId))]));
}

/** False: unknown. A finished request is unchanged; a running one's worker ends it soon. Safe to repeat. */
function createCancel(
  client: RedisClient,
  keyspace: Keyspace,
  { retentionMs, replayLog, onEarlyEnd }: RecordStoreSettings,
) {
  const cancel = defineTimedScript(client, 'cancel');

  return async (
    principal: Pick<Principal, 'shard' | 'keyId' | 'retentionSeconds'> & SearchedSpace,
    requestId: string,
  ): Promise<boolean> => {
    const { retentionSeconds = Infinity, mode } = principal;
    const { tenantId, shard } = principal;
    const { cancelled } = keyspace.shard(shard);
    const call = [
      [...acceptedKeys(keyspace, requestId, principal), cancelled],
      [
        requestId,
        tenantId,
        encodeEntry([], CANCELLED),
        eventsOf(CANCELLED),
        Math.min(retentionMs, retentionSeconds * 1000),
        BILLED[mode],
      ],
    ] as const;
    const how = { reason: 'cancelled while it waited' };
    const found = endedEarly(await cancel(...call), { requestId, ...principal }, how, onEarlyEnd);
    // A running request's worker ends it and repeats that itself.
    if (found === 'accepted') replayLog?.note(() => cancel(...call), { shard, requestId, tenantId });
    return found !== '';
  };
}

export function createRecordStore(client: RedisClient, keyspace: Keyspace, settings: RecordStoreSettings) {
  const attach = defineTimedScript(client, 'attach');
  const reader = defineTimedScript(client, 'renew-reader');

  function answerKeys(shard: number, requestId: string): string[] {
    const keys = keyspace.shard(shard);
    return [keys.record(requestId), keys.stream(requestId), keys.answer(requestId)];
  }

  async function look(
    { shard, tenantId, mode }: Principal,
    requestId: string,
    channel: string,
  ): Promise<RequestRecord | undefined> {
    const reply = await attach(answerKeys(shard, requestId), [tenantId, channel, READER_LEASE_MS, BILLED[mode]]);
    return Array.isArray(reply) ? toRecord(requestId, reply.map(String)) : undefined;
  }

  return {
    /** Undefined: unknown, another tenant's, of the other mode, or past its retention. */
    find: (principal: Principal, requestId: string): Promise<RequestRecord | undefined> =>
      look(principal, requestId, ''),
    /** Like `find`; workers publish entries to this ingress's channel from now on. */
    attach: look,
    place: createPlace(client, keyspace),
    /** Renews the ingress as a reader, even if Redis has forgotten it, and the life of the answer that it reads. */
    async renewReader(shard: number, requestId: string, channel: string): Promise<ReadState> {
      const state = await reader(answerKeys(shard, requestId), [channel, READER_LEASE_MS]);
      if (state === 'done' || state === 'void') return 'ended';
      return state === 'missing' ? 'unknown' : 'open';
    },
    async detach(shard: number, requestId: string, channel: string): Promise<void> {
      await reader(answerKeys(shard, requestId), [channel, 0]);
    },
    /**
     * Deletes Redis's copy of an answer whose tenant keeps nothing, unless another ingress reads it. Call it when
     * readers here have the end. Safe to repeat.
     */
    wipe: (shard: number, requestId: string, channel: string): Promise<void> =>
      wipe(client, keyspace.shard(shard), requestId, channel),
    cancel: createCancel(client, keyspace, settings),
  };
}

/** The present moment as a place in a shard's order of acceptance. */
export type AcceptanceClock = ReturnType<typeof createAcceptanceClock>;

export function createAcceptanceClock(client: RedisClient, keyspace: Keyspace) {
  return {
    /** By the shard's clock, in microseconds: earlier requests have a lower `seq`, later ones a higher one. */
    read: (shard: number): Promise<number> => serverTimeUs(client, keyspace.shard(shard).inflight),
  };
}
