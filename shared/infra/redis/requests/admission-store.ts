import { encodeEntry } from '../../../contracts/events.ts';
import type { Terminal } from '../../../contracts/events.ts';
import { flagOf } from '../../../domain/keys/principal.ts';
import type { Principal } from '../../../domain/keys/principal.ts';
import {
  ADDRESS_FAILURES_PER_MINUTE,
  LOOKUPS_PER_MINUTE,
  TENANT_LOOKUPS_PER_MINUTE,
  tenantCallsPerMinute,
} from '../../../domain/limits/defaults.ts';
import type { RedisClient } from '../connection.ts';
import { acceptedKeys } from '../keyspace.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript, defineTimedScript } from '../scripts.ts';
import { createShardClocks, timely } from '../timely-script.ts';
import type { ShardClocks } from '../timely-script.ts';
import { numbersOf, readTime, toAdmission } from './admission-reply.ts';
import type { Admission } from './admission-reply.ts';
import { toAdmitCall } from './admit-call.ts';
import type { AdmissionRequest } from './admit-call.ts';
import { TOMBSTONE_MS } from './record-store.ts';

export type { Admission, Verdict, WindowFigures } from './admission-reply.ts';

export interface AdmissionSettings {
  queueLimit: number;
  requestTimeoutMs: number;
  retentionMs: number;
  /** What the process knows of the shards' clocks. Absent: nothing yet. */
  clocks?: ShardClocks;
}

export interface AdmissionStore {
  /** Admits or refuses a request, in one script. `now` (ms since the epoch) is used until the shard's own clock is known. */
  admit(request: AdmissionRequest, now: number): Promise<Admission>;
  /**
   * Voids an accepted request; see void.lua for the states it returns. `last` ends the stream for whoever still reads it.
   * Safe to repeat.
   */
  void(requestId: string, owner: RequestOwner, last?: Terminal): Promise<string>;
  /** As `void`, but the caller gets an error unless a worker has the request: once voided, nobody may put it back. What another
   * call has joined stays. */
  voidForGood(requestId: string, owner: RequestOwner, last: Terminal): Promise<string>;
  /**
   * As `void`, for a request whose caller got 503: a worker that already has it stops, and nobody pays. `isRefused`: no
   * admission is under way, so a missing record needs no tombstone.
   */
  disown(requestId: string, owner: RequestOwner, last: Terminal, isRefused?: boolean): Promise<string>;
  /** Counts a request that is not a chat request. `take: false` checks without counting. */
  count(requestId: string, principal: Principal, take: boolean, besides?: SecondWindow): Promise<Admission>;
  /** Counts a request that looks up, resumes or cancels another; these have their own limit. */
  countLookup(requestId: string, principal: Principal): Promise<Admission>;
  /** Counts a failed authentication of an address. */
  countAddress(requestId: string, address: string): Promise<AddressCount>;
}

/** An endpoint's own limit, of a key or of all keys of a tenant, in addition to the key's rpm. Its verdict is `throttle`. */
interface SecondWindow {
  name: string;
  limit: number;
  of: 'key' | 'tenant';
}

type RequestOwner = Pick<Principal, 'shard' | 'keyId' | 'tenantId'>;

interface AddressCount {
  allowed: boolean;
  requests: number;
  requestsResetMs: number;
  retryAfterMs: number;
}

export function createAdmissionStore(
  client: RedisClient,
  keyspace: Keyspace,
  settings: AdmissionSettings,
): AdmissionStore {
  const admitNow = defineScript(client, 'admit', [
    'window',
    'account',
    'use',
    'line',
    'pace',
    'readers',
    'keep-nothing',
    'retries',
    'refusal',
  ]);
  const clocks = settings.clocks ?? createShardClocks();
  const admit = timely(admitNow, readTime, clocks);
  const take = defineTimedScript(client, 'count', ['window', 'account', 'use']);
  const takeAddress = defineTimedScript(client, 'count-address', ['window']);
  const takeBack = defineScript(client, 'void', [
    'window',
    'account',
    'use',
    'line',
    'emit',
    'forget',
    'drop',
    'keep-nothing',
    'put-back',
  ]);
  const { queueLimit, requestTimeoutMs, retentionMs } = settings;
  const recordLifeMs = requestTimeoutMs + retentionMs + TOMBSTONE_MS;
  const admitSettings = { queueLimit, requestTimeoutMs, retentionMs, recordLifeMs };

  async function countIn(
    requestId: string,
    principal: Principal,
    log: 'rpm' | 'lookup',
    takeOne: boolean,
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
        keys.keyUse(keyId),
        keys.blocked(flagOf(principal)),
        keys.blocked(tenantId),
        own,
        besides === undefined ? own : keys.throttle(besides.name, besides.of === 'tenant' ? tenantId : keyId),
        logOf(tenantId),
      ],
      [
        requestId,
        log === 'rpm' ? limits.rpm : LOOKUPS_PER_MINUTE,
        takeOne ? 1 : 0,
        besides?.limit ?? '',
        // Only chat requests are looked at without being counted, and they have ceilings of their own.
        takeOne ? ofTenant : '',
      ],
    );
    return toAdmission(reply);
  }

  async function voidAs(
    requestId: string,
    owner: RequestOwner,
    { last, ...is }: { last?: Terminal; isDisowned?: boolean; isRefused?: boolean; isForGood?: boolean },
  ) {
    const { isDisowned = false, isRefused = false, isForGood = false } = is;
    const { cancelled } = keyspace.shard(owner.shard);
    const entry = last === undefined ? '' : encodeEntry([], last);
    const state = await takeBack(
      [...acceptedKeys(keyspace, requestId, owner), cancelled],
      [requestId, TOMBSTONE_MS, entry, isDisowned ? 1 : 0, isRefused ? 1 : 0, isForGood ? 1 : 0, owner.tenantId],
    );
    return String(state);
  }

  return {
    async admit(request, now) {
      const { shard } = request.principal;
      const acceptedAt = clocks.at(shard, performance.now()) ?? now;
      return toAdmission(await admit(shard, ...toAdmitCall(keyspace, request, acceptedAt, admitSettings)));
    },

    void: (requestId, owner, last) => voidAs(requestId, owner, last === undefined ? {} : { last }),
    voidForGood: (requestId, owner, last) => voidAs(requestId, owner, { last, isForGood: true }),
    disown: (requestId, owner, last, isRefused = false) =>
      voidAs(requestId, owner, { last, isDisowned: true, isRefused }),

    count: (requestId, principal, takeOne, besides) => countIn(requestId, principal, 'rpm', takeOne, besides),
    countLookup: (requestId, principal) => countIn(requestId, principal, 'lookup', true),

    async countAddress(requestId, address) {
      const reply = await takeAddress(
        // Addresses belong to no tenant: they live on the first shard.
        [keyspace.shard(0).address(address)],
        [requestId, ADDRESS_FAILURES_PER_MINUTE],
      );
      const { verdict, numbers } = numbersOf(reply);
      const [requests = 0, requestsResetMs = 0, retryAfterMs = 0] = numbers;
      return { allowed: verdict === 'admitted', requests, requestsResetMs, retryAfterMs };
    },
  };
}
