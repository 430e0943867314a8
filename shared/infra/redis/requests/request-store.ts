import type { FinishReason, Terminal } from '../../../contracts/events.ts';
import { encodeEntry, eventsOf } from '../../../contracts/events.ts';
import type { QueueName, RequestEnvelope } from '../../../contracts/jobs.ts';
import type { SettlementRecord } from '../../../contracts/settlement.ts';
import type { Rates } from '../../../domain/routing/routing.ts';
import { randomBase62 } from '../../../lifecycle/ids.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import { serverTimeMs } from '../timing.ts';
import type { Script, ScriptReply } from '../scripts.ts';

/** An attempt's right to write: a higher fence shuts out every lower one. */
export interface ClaimedRequest {
  kind: 'run';
  shard: number;
  fence: number;
  envelope: RequestEnvelope;
  /** Milliseconds until the request's deadline; negative when it has passed. */
  remainingMs: number;
  /** Sequence number of the last event that an earlier attempt sent; 0: nothing was sent. */
  sent: number;
  cancelled: boolean;
  seq: number;
  held: Held;
  /** The prices of its acceptance. Undefined: a record without them. */
  rates: Rates | undefined;
  /** What an earlier attempt asked, as it counted; 0: not known. */
  promptTokens: number;
  /** Redis's clock minus this process's is not known: all times of a request are Redis's. */
  now: number;
}

/** What a request holds of each bound; Infinity where the bound does not apply to it. */
export interface Held {
  micro: number;
  /** Of the monthly budget, or of the test allowance. */
  tokens: number;
}

/** `drop`: another attempt has it, or it has ended. */
type Claim = ClaimedRequest | { kind: 'drop'; reason: string };

export type WriteOutcome = 'ok' | 'cancelled' | 'superseded';
export type Renewal = { outcome: 'ok' | 'cancelled'; held: Held } | { outcome: 'superseded' };

/** `cancelled` and `failed` are ends without an answer. */
export type FinalStatus = 'completed' | 'failed' | 'cancelled';

export interface Ending {
  status: FinalStatus;
  /** Text that has not been appended yet. */
  deltas: readonly string[];
  terminal: Terminal;
  costMicro: number;
  /** Of a request that nobody pays for: tokens a provider was asked for, which stay in the key's window and allowance. */
  unbilledTokens?: number;
  /** How far the charge may overdraw the account. */
  overdraftMicro?: number;
  /** How long answer and record are kept. */
  retentionMs: number;
  /** Absent: nothing is charged, no ledger entry (docs/spec/contract.md section 5). */
  settlement?: SettlementRecord;
}

/** Names one running attempt. */
export interface AttemptRef {
  shard: number;
  requestId: string;
  tenantId: string;
  keyId: string;
  lane: QueueName;
  fence: number;
}

/** What a running request asks to hold in all; what it holds already is never taken from it. */
export interface Needed {
  /** Tokens that it weighs in its key's window. */
  weight: number;
  /** Granted as far as there is so much. */
  must: Held;
  /** Asked ahead of need: granted as far as it is a small part of what is left. */
  ahead: Held;
  /** How far the request may go beyond a bound of which nobody else holds anything. */
  overrun: Held;
}

export interface RequestStore {
  claim(shard: number, requestId: string, tenantId: string, attempt: number): Promise<Claim>;
  /** `lastSeq`: sequence number of the last of `deltas`. `promptTokens`: kept for whoever has to end the request. */
  append(ref: AttemptRef, lastSeq: number, deltas: readonly string[], promptTokens?: number): Promise<WriteOutcome>;
  /** How long the attempt that runs the request still owns it, unless it renews; 0: nobody does. Milliseconds. */
  leaseLeftMs(shard: number, requestId: string): Promise<number>;
  /** Renews the lease, raises the token weight and answers what is granted. */
  renew(ref: AttemptRef, needed: Needed): Promise<Renewal>;
  /** `sentSeq`: sequence number of the last event before this. False: this attempt no longer owns the request. */
  finish(ref: AttemptRef, sentSeq: number, ending: Ending): Promise<boolean>;
  /**
   * Replays the end of a request to a Redis that may have lost its last writes. `replayed`: it
   * did not know; where even the record was lost, the charge alone is brought again, and the book takes it once.
   * `superseded`: it knows another attempt, which ends the request.
   */
  replayFinish(ref: AttemptRef, sentSeq: number, ending: Ending): Promise<'known' | 'replayed' | 'superseded'>;
}

export interface RequestStoreSettings {
  leaseMs: number;
  /** Time in which a client that left may come back. */
  disconnectGraceMs: number;
}

/** As raise_holds of account.lua answers it: -1 where a bound does not apply. */
function toHeld(micro: unknown, tokens: unknown): Held {
  const amountOf = (held: unknown) => (Number(held) === -1 ? Infinity : Number(held));
  return { micro: amountOf(micro), tokens: amountOf(tokens) };
}

/** `rates`: micro-credits a token of prompt and completion, as admit.lua wrote them. */
function toRates(rates: string): Rates | undefined {
  const [promptMicro, completionMicro] = rates.split(' ').map(Number);
  return promptMicro === undefined || completionMicro === undefined ? undefined : { promptMicro, completionMicro };
}

function toClaimed(shard: number, fence: number, reply: readonly string[]): ClaimedRequest {
  const [, body = '', remainingMs, sent, cancel, seq, now, micro, tokens, rates = '', promptTokens] = reply;
  return {
    kind: 'run',
    shard,
    fence,
    // Written by the ingress, in this repository, as a RequestEnvelope.
    envelope: JSON.parse(body) as RequestEnvelope,
    remainingMs: Number(remainingMs),
    sent: Number(sent),
    cancelled: cancel !== '',
    seq: Number(seq),
    held: toHeld(micro, tokens),
    rates: toRates(rates),
    promptTokens: Number(promptTokens),
    now: Number(now),
  };
}

/** What each finish reason means for the look-up of a request. */
export function statusOf(reason: FinishReason): FinalStatus {
  if (reason === 'error') return 'failed';
  return reason === 'cancelled' ? 'cancelled' : 'completed';
}

/**
 * Commands that share a write are given up by ioredis when the connection ends in the middle of their answers; others
 * it sends again by itself. Each of these scripts may be sent twice, so none is given up.
 */
function repeatable(script: Script): Script {
  return async (keys, args) => {
    for (;;) {
      try {
        return await script(keys, args);
      } catch (error) {
        if (!(error instanceof Error && error.name === 'AbortError')) throw error;
      }
    }
  };
}

export function createRequestStore(
  client: RedisClient,
  keyspace: Keyspace,
  settings: RequestStoreSettings,
): RequestStore {
  const claim = repeatable(defineScript(client, 'claim', ['window', 'account']));
  const append = repeatable(defineScript(client, 'append', ['window', 'emit']));
  const renew = repeatable(defineScript(client, 'renew', ['window', 'account']));
  const finish = repeatable(defineScript(client, 'finish', ['window', 'account', 'emit', 'forget']));

  /** Returns what finish.lua says. */
  function end(
    ref: AttemptRef,
    sentSeq: number,
    { status, deltas, terminal, costMicro, settlement, retentionMs, unbilledTokens, overdraftMicro }: Ending,
  ): Promise<ScriptReply> {
    const keys = keyspace.shard(ref.shard);
    const { promptTokens, completionTokens } = terminal.usage;
    const totalTokens = promptTokens + completionTokens;
    return finish(
      [
        keys.record(ref.requestId),
        keys.stream(ref.requestId),
        keys.body(ref.requestId),
        keys.inflight,
        keys.account(ref.tenantId),
        keys.pending(ref.tenantId),
        keys.outbox,
        keys.tpmLog(ref.keyId),
        keys.tpmWeights(ref.keyId),
        keys.meanCompletion(ref.keyId),
        keys.laneStatistics(ref.lane),
        keys.answer(ref.requestId),
      ],
      [
        ref.requestId,
        ref.fence,
        sentSeq + deltas.length + eventsOf(terminal),
        encodeEntry(deltas, terminal),
        status,
        costMicro,
        totalTokens,
        completionTokens,
        settlement === undefined ? '' : JSON.stringify(settlement),
        retentionMs,
        settlement === undefined ? (unbilledTokens ?? 0) : totalTokens,
        overdraftMicro ?? 0,
      ],
    );
  }

  return {
    async claim(shard, requestId, tenantId, attempt) {
      const keys = keyspace.shard(shard);
      const reply = await claim(
        [keys.record(requestId), keys.body(requestId), keys.inflight, keys.account(tenantId)],
        [requestId, attempt, settings.leaseMs, randomBase62(12)],
      );
      if (!Array.isArray(reply) || reply[0] !== 'run') {
        return { kind: 'drop', reason: Array.isArray(reply) ? reply.map(String).join(' ') : String(reply) };
      }
      return toClaimed(shard, attempt, reply.map(String));
    },

    async append(ref, lastSeq, deltas, promptTokens = 0) {
      const keys = keyspace.shard(ref.shard);
      const outcome = await append(
        [keys.record(ref.requestId), keys.stream(ref.requestId)],
        [ref.requestId, ref.fence, lastSeq, encodeEntry(deltas), promptTokens],
      );
      // append.lua knows no other outcome.
      return outcome as WriteOutcome;
    },

    async leaseLeftMs(shard, requestId) {
      const [[state, leased], now] = await Promise.all([
        client.hmget(keyspace.shard(shard).record(requestId), 'state', 'leased'),
        serverTimeMs(client),
      ]);
      return state === 'running' ? Math.max(0, Number(leased ?? 0) - now) : 0;
    },

    async renew(ref, { weight, must, ahead, overrun }) {
      const keys = keyspace.shard(ref.shard);
      const reply = await renew(
        [
          keys.record(ref.requestId),
          keys.inflight,
          keys.account(ref.tenantId),
          keys.tpmLog(ref.keyId),
          keys.tpmWeights(ref.keyId),
        ],
        [
          ref.requestId,
          ref.fence,
          settings.leaseMs,
          settings.disconnectGraceMs,
          Math.ceil(weight),
          ...[must, ahead, overrun].flatMap(({ micro, tokens }) => [Math.ceil(micro), Math.ceil(tokens)]),
        ],
      );
      const [outcome, micro, tokens] = Array.isArray(reply) ? reply : [];
      if (outcome !== 'ok' && outcome !== 'cancelled') return { outcome: 'superseded' };
      return { outcome, held: toHeld(micro, tokens) };
    },

    finish: async (...ending) => (await end(...ending)) === 'finished',

    async replayFinish(ref, sentSeq, ending) {
      const { record, outbox } = keyspace.shard(ref.shard);
      const state = await client.hget(record(ref.requestId), 'state');
      if (state === 'done') return 'known';
      const outcome = await end(ref, sentSeq, ending);
      if (outcome === 'finished') return 'replayed';
      if (outcome !== 'missing' && outcome !== 'void') return 'superseded';
      if (ending.settlement !== undefined) await client.xadd(outbox, '*', 's', JSON.stringify(ending.settlement));
      return 'replayed';
    },
  };
}
