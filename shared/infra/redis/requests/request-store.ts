import type { QueueName } from '../../../contracts/jobs.ts';
import { encodeEntry, eventsOf } from '../../../contracts/events.ts';
import type { EndedAnswer } from '../../../contracts/stored-answer.ts';
import { UnreadableError } from '../../../contracts/stored-request.ts';
import { randomBase62 } from '../../../lifecycle/ids.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import { serverTimeMs } from '../timing.ts';
import type { ScriptReply } from '../scripts.ts';
import { createCommonAppend } from './common-append.ts';
import { toFinishCall } from './finish-call.ts';
import { getLongBody } from './long-bodies.ts';
import { createRollbackWrites } from './rollback-writes.ts';
import type { AppendMore } from './rollback-writes.ts';
import { createAnswerCache } from './stored-answers.ts';
import { readEnvelope, toClaimed, toHeld } from './running-request.ts';
import type {
  DeliveryRef,
  Claim,
  ClaimedRequest,
  Ending,
  Needed,
  MadeClaim,
  Renewal,
  WriteOutcome,
} from './running-request.ts';

export { statusOf } from './running-request.ts';
export type { DeliveryRef, Ending, Needed, Renewal, Unreadable, WriteOutcome } from './running-request.ts';

export interface RequestStore {
  /** `fence`: the number of the delivery. `made`: the claim that came with the job, so Redis is not asked. */
  claim(shard: number, requestId: string, tenantId: string, fence: number, made?: MadeClaim): Promise<Claim>;
  /** `lastSeq`: sequence number of the last of `deltas`. Also appends what Redis has lost of the text before. */
  append(ref: DeliveryRef, lastSeq: number, deltas: readonly string[], more?: AppendMore): Promise<WriteOutcome>;
  /** Milliseconds until the lease of the request's delivery ends; 0: no delivery has it. */
  leaseLeftMs(shard: number, requestId: string): Promise<number>;
  /** Renews the lease, raises the token weight and resolves with what is held. */
  renew(ref: DeliveryRef, needed: Needed): Promise<Renewal>;
  /** `sentSeq`: sequence number of the last event before this. False: this delivery no longer owns the request. */
  finish(ref: DeliveryRef, sentSeq: number, ending: Ending): Promise<boolean>;
  /**
   * Repeats the end of a request to a Redis that may have lost its last writes. `known`: it had not lost it. `replayed`: it
   * had. If even the record was lost, the charge is written again, and the book takes it once; of the answer only what nobody
   * has but Redis (`record`). `superseded`: another delivery has the request and ends it.
   */
  replayFinish(ref: DeliveryRef, sentSeq: number, ending: Ending): Promise<'known' | 'replayed' | 'superseded'>;
}

export interface RequestStoreSettings {
  leaseMs: number;
  /** How long a client that left may take to come back. */
  disconnectGraceMs: number;
  /** Whether Redis is away, or came back within this time. */
  hasReconnectedRecently?: (withinMs: number) => boolean;
}

/** Readers cannot renew their leases while Redis is away. They do once their ingress is connected again, some seconds later. */
const READERS_BACK_MS = 20_000;

/** By how much a clock is put back now and then. */
const CLOCK_MS = 5_000;

/** A whole answer as Redis had it; one that was sent piece by piece has had a reader. */
function answerOf({ requestId, tenantId }: DeliveryRef, { status, deltas, terminal, record }: Ending): EndedAnswer {
  const lastSeq = deltas.length + eventsOf(terminal);
  const fields = { ...record, tenant: tenantId, state: 'done', status, sent: String(lastSeq) };
  return { requestId, tenantId, fields, entries: [{ lastSeq, payload: encodeEntry(deltas, terminal) }] };
}

/** What finish.lua returns if the request has ended. */
const ENDED: ReadonlySet<unknown> = new Set(['finished', 'unheard']);

export function createRequestStore(
  client: RedisClient,
  keyspace: Keyspace,
  settings: RequestStoreSettings,
): RequestStore {
  const claim = defineScript(client, 'claim', ['window', 'account', 'claiming']);
  const renew = defineScript(client, 'renew', ['window', 'account', 'use']);
  const parts = ['window', 'account', 'use', 'line', 'pace', 'emit', 'forget', 'keep-nothing'] as const;
  const finish = defineScript(client, 'finish', parts);
  const answers = createAnswerCache(client, keyspace);
  const { hasReconnectedRecently = () => false } = settings;
  const writes = createRollbackWrites({
    append: createCommonAppend(client, keyspace),
    end,
    claim: ({ shard, requestId, tenantId, fence }, owner) => sendClaim(shard, requestId, tenantId, fence, owner),
    hasReconnectedRecently,
  });
  /** Ends that nobody pays for. Remembered here, as Redis may lose the record that says so. */
  const unheard = new WeakSet<Ending>();

  function sendClaim(shard: number, requestId: string, tenantId: string, fence: number, owner: string) {
    const keys = keyspace.shard(shard);
    return claim(
      [keys.record(requestId), keys.body(requestId), keys.inflight, keys.account(tenantId)],
      [requestId, fence, settings.leaseMs, owner, keys.account('')],
    );
  }

  /** Claims, unless that came with the job, and reads the body: a long one by itself, see long-bodies.ts. */
  async function claimWhole(
    shard: number,
    requestId: string,
    tenantId: string,
    fence: number,
    owner: string,
    made?: ScriptReply[],
  ): Promise<{ reply: ScriptReply; body: string }> {
    const reply = made ?? (await sendClaim(shard, requestId, tenantId, fence, owner));
    const isClaimed = Array.isArray(reply) && reply[0] === 'run';
    const body = isClaimed ? String(reply[1]) : '';
    if (!isClaimed || body !== '') return { reply, body };
    const long = await getLongBody(client, keyspace.shard(shard).body(requestId));
    if (long !== undefined) return { reply, body: long };
    // It has ended meanwhile, or Redis came back without it: the claim says which.
    return claimWhole(shard, requestId, tenantId, fence, owner);
  }

  /** Reads from the record what the unreadable body would have said. */
  async function identify(
    { shard, fence, owner }: Pick<ClaimedRequest, 'shard' | 'fence' | 'owner'>,
    requestId: string,
  ) {
    const values = await client.hmget(keyspace.shard(shard).record(requestId), 'tenant', 'key', 'lane', 'life', 'keep');
    const [tenantId = '', keyId = '', queueName, life] = values.map((value) => value ?? '');
    const keep = values[4];
    // Written by admit.lua, for batches only.
    const queue: QueueName = queueName === 'batch' ? 'batch' : 'interactive';
    return { ref: { shard, requestId, tenantId, keyId, queue, fence, owner }, retentionMs: Number(keep ?? life) };
  }

  /** Returns what finish.lua says. */
  function end(ref: DeliveryRef, sentSeq: number, ending: Ending): Promise<ScriptReply> {
    return finish(...toFinishCall(keyspace, ref, sentSeq, ending));
  }

  /** Writes the charge of a request whose record is lost, and with `isWhole` the answer that nobody has but Redis. */
  async function bringBack(ref: DeliveryRef, sentSeq: number, ending: Ending, isWhole: boolean): Promise<void> {
    const { outbox } = keyspace.shard(ref.shard);
    await client.xadd(outbox, '*', 's', JSON.stringify(ending.settlement));
    if (!isWhole || sentSeq > 0 || ending.record === undefined) return;
    await answers.restore(ref.shard, answerOf(ref, ending), { ttlMs: ending.retentionMs, namedMs: 0 });
  }

  return {
    async claim(shard, requestId, tenantId, fence, made) {
      const owner = made?.owner ?? randomBase62(12);
      const { reply, body } = await claimWhole(shard, requestId, tenantId, fence, owner, made?.reply);
      if (!Array.isArray(reply) || reply[0] !== 'run') {
        return { kind: 'drop', reason: Array.isArray(reply) ? reply.map(String).join(' ') : String(reply) };
      }
      const values = reply.map(String);
      const claimed = { shard, fence, owner };
      const envelope = readEnvelope(body);
      if (!(envelope instanceof UnreadableError)) return toClaimed(claimed, envelope, values);
      return {
        kind: 'unreadable',
        error: envelope,
        sent: Number(values[3]),
        ...(await identify(claimed, requestId)),
      };
    },

    append: (ref, lastSeq, deltas, more = {}) => writes.append(ref, lastSeq, deltas, more),

    async leaseLeftMs(shard, requestId) {
      const [[state, leased], now] = await Promise.all([
        client.hmget(keyspace.shard(shard).record(requestId), 'state', 'leased'),
        serverTimeMs(client, keyspace.shard(shard).record(requestId)),
      ]);
      const leftMs = state === 'running' ? Number(leased ?? 0) - now : 0;
      // No lease is longer: the server's clock has been put back, and a worker that lives would have renewed it since.
      return leftMs > settings.leaseMs + CLOCK_MS ? 0 : Math.max(0, leftMs);
    },

    async renew(ref, { weight, must, ahead, overrun }) {
      const keys = keyspace.shard(ref.shard);
      const send = async (): Promise<readonly ScriptReply[]> => {
        const reply = await renew(
          [keys.record(ref.requestId), keys.inflight, keys.account(ref.tenantId), keys.keyUse(ref.keyId)],
          [
            ref.requestId,
            ref.fence,
            settings.leaseMs,
            settings.disconnectGraceMs,
            Math.ceil(weight),
            ...[must, ahead, overrun].flatMap(({ micro, tokens }) => [Math.ceil(micro), Math.ceil(tokens)]),
            ref.owner ?? '',
          ],
        );
        return Array.isArray(reply) ? reply : [];
      };
      const [outcome, micro, tokens] = await writes.renew(ref, send);
      const held = toHeld(micro, tokens);
      if (outcome === 'ok' || outcome === 'cancelled') return { outcome, held };
      if (outcome !== 'abandoned') return { outcome: 'superseded' };
      // Asked after the answer has come: ioredis may have repeated the command after a reconnect.
      return { outcome: hasReconnectedRecently(READERS_BACK_MS) ? 'ok' : 'cancelled', held };
    },

    async finish(ref, sentSeq, ending) {
      const outcome = await writes.end(ref, sentSeq, ending);
      if (outcome === 'unheard') unheard.add(ending);
      return ENDED.has(outcome);
    },

    async replayFinish(ref, sentSeq, ending) {
      const { record } = keyspace.shard(ref.shard);
      const [state, untold] = await client.hmget(record(ref.requestId), 'state', 'untold');
      if (state === 'done') return 'known';
      const { settlement, ...rest } = ending;
      const isDue = settlement !== undefined && !unheard.has(ending);
      // A line was taken out of its queue before anybody could say that it has ended, and its result does not say so yet.
      const isTakenOut = state === 'void' && untold !== null && ending.record !== undefined;
      const outcome = isTakenOut
        ? 'missing'
        : await writes.end(ref, sentSeq, isDue ? ending : { ...rest, costMicro: 0 });
      if (ENDED.has(outcome)) return 'replayed';
      if (outcome !== 'missing' && outcome !== 'void') return 'superseded';
      if (isDue) await bringBack(ref, sentSeq, ending, outcome === 'missing');
      return 'replayed';
    },
  };
}
