import { encodeEntry, eventsOf } from '../../../contracts/events.ts';
import type { QueueName } from '../../../contracts/jobs.ts';
import { UnreadableError } from '../../../contracts/stored-request.ts';
import { randomBase62 } from '../../../lifecycle/ids.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript, textsOf } from '../scripts.ts';
import { serverTimeMs } from '../timing.ts';
import type { ScriptReply } from '../scripts.ts';
import { createCommonAppend } from './common-append.ts';
import { getLongBody } from './long-bodies.ts';
import { createRollbackWrites } from './rollback-writes.ts';
import type { AppendMore } from './rollback-writes.ts';
import { readEnvelope, toClaimed, toHeld } from './running-request.ts';
import type { AttemptRef, Claim, ClaimedRequest, Ending, Needed } from './running-request.ts';
import type { MadeClaim, Renewal, WriteOutcome } from './running-request.ts';

export { statusOf } from './running-request.ts';
export type { AttemptRef, Ending, Needed, Renewal, Unreadable, WriteOutcome } from './running-request.ts';

export interface RequestStore {
  /** `made`: the claim that came with the job; nothing is asked then. */
  claim(shard: number, requestId: string, tenantId: string, attempt: number, made?: MadeClaim): Promise<Claim>;
  /** `lastSeq`: sequence number of the last of `deltas`. Sends again what Redis has lost of the text before. */
  append(ref: AttemptRef, lastSeq: number, deltas: readonly string[], more?: AppendMore): Promise<WriteOutcome>;
  /** How long the attempt that runs the request still owns it, unless it renews; 0: nobody does. Milliseconds. */
  leaseLeftMs(shard: number, requestId: string): Promise<number>;
  /** Renews the lease, raises the token weight and answers what is granted. */
  renew(ref: AttemptRef, needed: Needed): Promise<Renewal>;
  /** `sentSeq`: sequence number of the last event before this. False: this attempt no longer owns the request. */
  finish(ref: AttemptRef, sentSeq: number, ending: Ending): Promise<boolean>;
  /**
   * Says once more that this attempt has ended the request, to a Redis that may have lost its last writes. `replayed`: it
   * did not know; where even the record was lost, the charge alone is brought again, and the book takes it once.
   * `superseded`: it knows another attempt, which ends the request.
   */
  replayFinish(ref: AttemptRef, sentSeq: number, ending: Ending): Promise<'known' | 'replayed' | 'superseded'>;
}

export interface RequestStoreSettings {
  leaseMs: number;
  /** Time in which a client that left may come back. */
  disconnectGraceMs: number;
  /** Whether Redis came back so short a time ago, or is away. */
  hasReconnectedRecently?: (withinMs: number) => boolean;
}

/** Readers, who could not renew their leases while Redis was away, renew at once when their ingress is back: some seconds later. */
const READERS_BACK_MS = 20_000;

/** finish.lua says these of a request that it has ended. */
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
  const { hasReconnectedRecently = () => false } = settings;
  const writes = createRollbackWrites({
    append: createCommonAppend(client, keyspace),
    end,
    claim: ({ shard, requestId, tenantId, fence }, owner) => sendClaim(shard, requestId, tenantId, fence, owner),
    hasReconnectedRecently,
  });
  /** Ends that nobody pays for: with the record Redis forgets that, too. */
  const unheard = new WeakSet<Ending>();

  function sendClaim(shard: number, requestId: string, tenantId: string, attempt: number, owner: string) {
    const keys = keyspace.shard(shard);
    return claim(
      [keys.record(requestId), keys.body(requestId), keys.inflight, keys.account(tenantId)],
      [requestId, attempt, settings.leaseMs, owner, keys.account('')],
    );
  }

  /** Claims, unless that came with the job, and reads the body: a long one by itself, see long-bodies.ts. */
  async function claimWhole(
    shard: number,
    requestId: string,
    tenantId: string,
    attempt: number,
    owner: string,
    made?: ScriptReply[],
  ): Promise<{ reply: ScriptReply; body: string }> {
    const reply = made ?? (await sendClaim(shard, requestId, tenantId, attempt, owner));
    const isClaimed = Array.isArray(reply) && reply[0] === 'run';
    const body = isClaimed ? String(reply[1]) : '';
    if (!isClaimed || body !== '') return { reply, body };
    const long = await getLongBody(client, keyspace.shard(shard).body(requestId));
    if (long !== undefined) return { reply, body: long };
    // It has ended meanwhile, or Redis came back without it: the claim says which.
    return claimWhole(shard, requestId, tenantId, attempt, owner);
  }

  /** Whose request it is, by its record. */
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
  function end(
    ref: AttemptRef,
    sentSeq: number,
    {
      status,
      deltas,
      terminal,
      costMicro,
      settlement,
      retentionMs,
      unbilledTokens,
      overdraftMicro,
      notice,
      jobLock,
    }: Ending,
  ): Promise<ScriptReply> {
    const keys = keyspace.shard(ref.shard);
    const { promptTokens, completionTokens } = terminal.usage;
    const totalTokens = promptTokens + completionTokens;
    const lastSeq = sentSeq + deltas.length + eventsOf(terminal);
    const entry = encodeEntry(deltas, terminal);
    const head = ref.owner === undefined ? `${lastSeq}` : `${lastSeq} ${ref.owner}`;
    return finish(
      [
        keys.record(ref.requestId),
        keys.body(ref.requestId),
        keys.inflight,
        keys.account(ref.tenantId),
        keys.pending(ref.tenantId),
        keys.outbox,
        keys.keyUse(ref.keyId),
        keys.meanCompletion(ref.keyId),
        keys.queueStatistics(ref.queue),
        keys.answer(ref.requestId),
        keys.open(ref.tenantId),
        keys.job(ref.queue, ref.requestId),
        keys.active(ref.queue),
      ],
      [
        ref.requestId,
        textsOf([
          ...[costMicro, totalTokens, completionTokens, settlement === undefined ? (unbilledTokens ?? 0) : totalTokens],
          ...[overdraftMicro ?? 0, ref.fence, lastSeq, sentSeq, status, retentionMs, ref.owner ?? '', ref.queue],
          jobLock ?? '',
        ]),
        sentSeq === 0 ? `${head}\n${entry}` : entry,
        settlement === undefined ? '' : JSON.stringify(settlement),
        notice === undefined ? '' : JSON.stringify(notice),
      ],
    );
  }

  return {
    async claim(shard, requestId, tenantId, attempt, made) {
      const owner = made?.owner ?? randomBase62(12);
      const { reply, body } = await claimWhole(shard, requestId, tenantId, attempt, owner, made?.reply);
      if (!Array.isArray(reply) || reply[0] !== 'run') {
        return { kind: 'drop', reason: Array.isArray(reply) ? reply.map(String).join(' ') : String(reply) };
      }
      const values = reply.map(String);
      const claimed = { shard, fence: attempt, owner };
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
      return state === 'running' ? Math.max(0, Number(leased ?? 0) - now) : 0;
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
      // Asked when the answer is there: ioredis sends a command again that was under way when the connection broke.
      return { outcome: hasReconnectedRecently(READERS_BACK_MS) ? 'ok' : 'cancelled', held };
    },

    async finish(ref, sentSeq, ending) {
      const outcome = await writes.end(ref, sentSeq, ending);
      if (outcome === 'unheard') unheard.add(ending);
      return ENDED.has(outcome);
    },

    async replayFinish(ref, sentSeq, ending) {
      const { record, outbox } = keyspace.shard(ref.shard);
      const state = await client.hget(record(ref.requestId), 'state');
      if (state === 'done') return 'known';
      const { settlement, ...rest } = ending;
      const isDue = settlement !== undefined && !unheard.has(ending);
      const due = isDue ? ending : { ...rest, costMicro: 0 };
      const outcome = await writes.end(ref, sentSeq, due);
      if (ENDED.has(outcome)) return 'replayed';
      if (outcome !== 'missing' && outcome !== 'void') return 'superseded';
      if (isDue) await client.xadd(outbox, '*', 's', JSON.stringify(settlement));
      return 'replayed';
    },
  };
}
