import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import type { ScriptReply } from '../scripts.ts';
import { serverTimeMs } from '../timing.ts';
import { createClaimRequest } from './claim-request.ts';
import type { ClaimRequest } from './claim-request.ts';
import { createCommonAppend } from './common-append.ts';
import { toFinishCall } from './finish-call.ts';
import { createFinishRequest } from './finish-request.ts';
import type { FinishRequest } from './finish-request.ts';
import { createRollbackWrites } from './rollback-writes.ts';
import type { AppendMore } from './rollback-writes.ts';
import { toPutBackRunning } from './put-back-call.ts';
import { toHeld } from './running-request.ts';
import type { DeliveryRef, Needed, Renewal, WriteOutcome } from './running-request.ts';

export interface RequestStore extends FinishRequest, Pick<ClaimRequest, 'claim'> {
  /** `lastSeq`: sequence number of the last of `deltas`. Also appends what Redis has lost of the text before. */
  append(ref: DeliveryRef, lastSeq: number, deltas: readonly string[], more?: AppendMore): Promise<WriteOutcome>;
  /** Milliseconds until the lease of the request's delivery ends; 0: no delivery has it. */
  leaseLeftMs(shard: number, requestId: string): Promise<number>;
  /** Renews the lease, raises the token weight and resolves with what is held. */
  renew(ref: DeliveryRef, needed: Needed): Promise<Renewal>;
}

export interface RequestStoreSettings {
  leaseMs: number;
  /** How long a client that left may take to come back. */
  disconnectGraceMs: number;
  /** Whether the shard's Redis is away, or came back within this time. */
  hasReconnectedRecently?: (shard: number, withinMs: number) => boolean;
  /** For how long the shard's Redis was away before it came back a moment ago; milliseconds. */
  lastAwayMs?: (shard: number) => number;
  /** Brings a tenant's book to a Redis that has lost it; never rejects. Without it what runs goes on until the book is there. */
  loadBook?: (shard: number, tenantId: string) => Promise<void>;
}

/**
 * Readers cannot renew their leases while Redis is away. They do once their ingress is connected again, some seconds later.
 * A request whose last reader has said since that it left has none.
 */
const READERS_BACK_MS = 20_000;

/** What put-back-running.lua returns where Redis lacks the tenant's book, too. */
const BOOKLESS = 2;

/** By how much a clock is put back now and then. */
const CLOCK_MS = 5_000;

export function createRequestStore(
  client: RedisClient,
  keyspace: Keyspace,
  settings: RequestStoreSettings,
): RequestStore {
  const { leaseMs, disconnectGraceMs, hasReconnectedRecently = () => false, lastAwayMs = () => 0, loadBook } = settings;
  const claiming = createClaimRequest(client, keyspace, leaseMs);
  const renew = defineScript(client, 'renew', ['window', 'account', 'use']);
  const parts = ['window', 'account', 'use', 'line', 'pace', 'emit', 'forget', 'keep-nothing', 'put-back'] as const;
  const finish = defineScript(client, 'finish', parts);
  const putBack = defineScript(client, 'put-back-running', ['window', 'account', 'use', 'put-back']);
  const writes = createRollbackWrites({
    append: createCommonAppend(client, keyspace),
    end: (ref, sentSeq, ending) => finish(...toFinishCall(keyspace, ref, sentSeq, ending)),
    claim: claiming.again,
    async putBack(ref) {
      const { facts, envelope } = ref;
      if (facts === undefined || envelope === undefined) return false;
      const known = { facts, envelope, leaseMs, awayMs: lastAwayMs(ref.shard) };
      const reply = await putBack(...toPutBackRunning(keyspace, ref, known));
      if (reply === BOOKLESS && facts.mode === 'live') await loadBook?.(ref.shard, ref.tenantId);
      if (reply !== 0) ref.wasPutBack = true;
      return reply !== 0;
    },
    hasReconnectedRecently,
  });

  return {
    claim: claiming.claim,

    ...createFinishRequest(client, keyspace, writes.end),

    append: (ref, lastSeq, deltas, more = {}) => writes.append(ref, lastSeq, deltas, more),

    async leaseLeftMs(shard, requestId) {
      const [[state, leased], now] = await Promise.all([
        client.hmget(keyspace.shard(shard).record(requestId), 'state', 'leased'),
        serverTimeMs(client, keyspace.shard(shard).record(requestId)),
      ]);
      const leftMs = state === 'running' ? Number(leased ?? 0) - now : 0;
      // No lease is longer: the server's clock has been put back, and a worker that lives would have renewed it since.
      return leftMs > leaseMs + CLOCK_MS ? 0 : Math.max(0, leftMs);
    },

    async renew(ref, { weight, must, ahead, overrun }) {
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
      const [outcome, micro, tokens, unreadMs] = await writes.renew(ref, send);
      const held = toHeld(micro, tokens);
      if (outcome === 'ok' || outcome === 'cancelled') return { outcome, held };
      if (outcome !== 'abandoned') return { outcome: 'superseded' };
      // Asked after the answer has come: ioredis may have repeated the command after a reconnect.
      const waitMs = Number(unreadMs) < 0 ? READERS_BACK_MS : Math.min(Number(unreadMs), READERS_BACK_MS);
      return { outcome: hasReconnectedRecently(ref.shard, waitMs) ? 'ok' : 'cancelled', held };
    },
  };
}
