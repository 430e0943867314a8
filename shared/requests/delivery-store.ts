import { UnreadableError } from '../contracts/request-envelope.ts';
import { randomBase62 } from '../lifecycle/ids.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { defineScript } from '../redis/scripts.ts';
import type { ScriptReply } from '../redis/scripts.ts';
import { serverTimeMs } from '../redis/time-limits.ts';
import { createCommonAppend } from './append-batch.ts';
import { queueOfRecord, readEnvelope, toClaimed, toHeld } from './delivery.ts';
import type { Claim, ClaimedRequest, DeliveryRef, PreparedClaim, Needed, Renewal, WriteOutcome } from './delivery.ts';
import { createFinishRequest } from './finish-request.ts';
import type { EndReplays } from './finish-request.ts';
import { createRepairs, toPutBackRunning } from './rollback.ts';

interface AppendMore {
  /** Tokens of what the provider was asked, in case another process has to end the request. */
  promptTokens?: number;
  /** Increments that this delivery appended before, in case Redis has lost some. */
  earlier?: readonly string[];
}

/** The delivery that claims a request. */
type Claimant = Pick<DeliveryRef, 'shard' | 'requestId' | 'tenantId' | 'fence'>;

/** The owner of a request and its body, in one call. */
function createClaimRequest(client: RedisClient, keyspace: Keyspace, leaseMs: number) {
  const script = defineScript(client, 'claim', ['window', 'account', 'claiming']);

  function send(
    { shard, requestId, tenantId, fence }: Claimant,
    owner: string,
    body: 'wanted' | 'known' = 'wanted',
  ): Promise<ScriptReply> {
    const keys = keyspace.shard(shard);
    return script(
      [keys.record(requestId), keys.body(requestId), keys.inflight, keys.account(tenantId)],
      [requestId, fence, leaseMs, owner, keys.account(''), body === 'known' ? 1 : 0],
    );
  }

  /** Reads from the record what the unreadable body would have said. */
  async function identify(
    { shard, fence, owner }: Pick<ClaimedRequest, 'shard' | 'fence' | 'owner'>,
    requestId: string,
  ) {
    const values = await client.hmget(
      keyspace.shard(shard).record(requestId),
      'tenant',
      'key',
      'queue',
      'ttlMs',
      'retentionMs',
    );
    const [tenantId = '', keyId = '', queue, life] = values.map((value) => value ?? '');
    const keep = values[4];
    return {
      ref: { shard, requestId, tenantId, keyId, queue: queueOfRecord(queue), fence, owner },
      retentionMs: Number(keep ?? life),
    };
  }

  return {
    /** Repeats a claim under its name, without the body, which Redis may have lost. Resolves with the reply of claim.lua. */
    again: (claimant: Claimant, owner: string): Promise<ScriptReply> => send(claimant, owner, 'known'),
    /** `made`: the claim that came with the job, so Redis is not asked. */
    async claim(claimant: Claimant, made?: PreparedClaim): Promise<Claim> {
      const { shard, requestId, fence } = claimant;
      const owner = made?.owner ?? randomBase62(12);
      const reply = made?.reply ?? (await send(claimant, owner));
      if (!Array.isArray(reply) || reply[0] !== 'run') {
        return { kind: 'drop', reason: Array.isArray(reply) ? reply.map(String).join(' ') : String(reply) };
      }
      const values = reply.map(String);
      const claimed = { shard, fence, owner };
      const envelope = readEnvelope(String(reply[1]));
      if (!(envelope instanceof UnreadableError)) return toClaimed(claimed, envelope, values);
      return {
        kind: 'unreadable',
        error: envelope,
        sent: Number(values[3]),
        ...(await identify(claimed, requestId)),
      };
    },
  };
}

export type RequestStore = ReturnType<typeof createRequestStore>;

export interface RequestStoreSettings {
  leaseMs: number;
  /** How long a client that left may take to come back. */
  disconnectGraceMs: number;
  /** Whether the shard's Redis is away, or came back within this time. */
  hasReconnectedRecently?: (shard: number, withinMs: number) => boolean;
  /** For how long the shard's Redis was away before it came back a moment ago; milliseconds. */
  lastAwayMs?: (shard: number) => number;
  /** Brings a tenant's book to a Redis that has lost it; never rejects. Without it what runs goes on until the book is there. */
  loadBalance?: (shard: number, tenantId: string) => Promise<void>;
  replays?: EndReplays;
}

/**
 * Readers cannot renew their leases while Redis is away. They do once their ingress is connected again, some seconds later.
 * A request whose last reader has said since that it left has none.
 */
const READERS_BACK_MS = 20_000;

/** What restore-running.lua returns where Redis lacks the tenant's book, too. */
const BOOKLESS = 2;

/** Puts a running request back that Redis has lost. False: it may have ended. */
function createRestore(client: RedisClient, keyspace: Keyspace, settings: RequestStoreSettings) {
  const { leaseMs, lastAwayMs = () => 0, loadBalance } = settings;
  const restore = defineScript(client, 'restore-running', ['window', 'account', 'token-window', 'restore-request']);
  return async (ref: DeliveryRef): Promise<boolean> => {
    const { facts, envelope } = ref;
    if (facts === undefined || envelope === undefined) return false;
    const known = { facts, envelope, leaseMs, awayMs: lastAwayMs(ref.shard) };
    const reply = await restore(...toPutBackRunning(keyspace, ref, known));
    if (reply === BOOKLESS && facts.mode === 'live') await loadBalance?.(ref.shard, ref.tenantId);
    if (reply !== 0) ref.wasRestored = true;
    return reply !== 0;
  };
}

/** By how much a clock is put back now and then. */
const CLOCK_MS = 5_000;

/** For how long the record's lease still holds; 0 where the request does not run. */
async function readLeaseLeftMs(client: RedisClient, record: string, leaseMs: number): Promise<number> {
  const [[state, leased], now] = await Promise.all([
    client.hmget(record, 'state', 'leased'),
    serverTimeMs(client, record),
  ]);
  const leftMs = state === 'running' ? Number(leased ?? 0) - now : 0;
  // No lease is longer: the server's clock has been put back, and a worker that lives would have renewed it since.
  return leftMs > leaseMs + CLOCK_MS ? 0 : Math.max(0, leftMs);
}

export function createRequestStore(client: RedisClient, keyspace: Keyspace, settings: RequestStoreSettings) {
  const { leaseMs, disconnectGraceMs, hasReconnectedRecently = () => false } = settings;
  const claiming = createClaimRequest(client, keyspace, leaseMs);
  const renew = defineScript(client, 'renew', ['window', 'account', 'token-window']);
  const append = createCommonAppend(client, keyspace);
  const writeWhole = createRepairs({
    claim: claiming.again,
    restore: createRestore(client, keyspace, settings),
    hasReconnectedRecently,
  });

  return {
    claim: claiming.claim,

    ...createFinishRequest(client, keyspace, writeWhole, settings.replays),

    /** `lastSeq`: sequence number of the last of `deltas`. Also appends what Redis has lost of the text before. */
    async append(
      ref: DeliveryRef,
      lastSeq: number,
      deltas: readonly string[],
      { promptTokens = 0, earlier = [] }: AppendMore = {},
    ): Promise<WriteOutcome> {
      const firstSeq = lastSeq - deltas.length - earlier.length;
      const write = async (known: number | undefined) => {
        if (known !== undefined && known < firstSeq) return 'superseded';
        const missing = known === undefined ? deltas : [...earlier, ...deltas].slice(known - firstSeq);
        return append({ ref, lastSeq, deltas: missing, promptTokens });
      };
      const outcome = await writeWhole(ref, write, (found) => found);
      return outcome === 'ok' || outcome === 'cancelled' ? outcome : 'superseded';
    },

    /** Milliseconds until the lease of the request's delivery ends; 0: no delivery has it. */
    leaseLeftMs: (shard: number, requestId: string): Promise<number> =>
      readLeaseLeftMs(client, keyspace.shard(shard).record(requestId), leaseMs),

    /** Renews the lease, raises the token weight and resolves with what is held. */
    async renew(ref: DeliveryRef, { weight, must, ahead, overrun }: Needed): Promise<Renewal> {
      const keys = keyspace.shard(ref.shard);
      const send = async (): Promise<readonly ScriptReply[]> => {
        const reply = await renew(
          [keys.record(ref.requestId), keys.inflight, keys.account(ref.tenantId), keys.keyUse(ref.keyId)],
          [
            ref.requestId,
            ref.fence,
            leaseMs,
            disconnectGraceMs,
            Math.ceil(weight),
            ...[must, ahead, overrun].flatMap(({ micro, tokens }) => [Math.ceil(micro), Math.ceil(tokens)]),
            ref.owner ?? '',
          ],
        );
        return Array.isArray(reply) ? reply : [];
      };
      const [outcome, micro, tokens, unreadMs] = await writeWhole(ref, send, ([found]) => found);
      const held = toHeld(micro, tokens);
      if (outcome === 'ok' || outcome === 'cancelled') return { outcome, held };
      if (outcome !== 'abandoned') return { outcome: 'superseded' };
      // Asked after the answer has come: ioredis may have repeated the command after a reconnect.
      const waitMs = Number(unreadMs) < 0 ? READERS_BACK_MS : Math.min(Number(unreadMs), READERS_BACK_MS);
      return { outcome: hasReconnectedRecently(ref.shard, waitMs) ? 'ok' : 'cancelled', held };
    },
  };
}
