import { encodeEntry, eventsOf } from '../../../contracts/events.ts';
import type { IdempotencyName } from '../../../contracts/jobs.ts';
import { STORED_ANSWER_MS } from '../../../contracts/stored-answer.ts';
import type { EndedAnswer } from '../../../contracts/stored-answer.ts';
import type { SettlementRecord } from '../../../contracts/settlement.ts';
import { dayOf, monthOf } from '../../../domain/pricing/pricing.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import type { ScriptReply } from '../scripts.ts';
import { BILLED } from './record-store.ts';
import type { RollbackWrites } from './rollback-writes.ts';
import type { DeliveryRef, Ending } from './running-request.ts';
import { createAnswerCache } from './stored-answers.ts';

export interface FinishRequest {
  /** `sentSeq`: sequence number of the last event before this. False: this delivery no longer owns the request. */
  finish(ref: DeliveryRef, sentSeq: number, ending: Ending): Promise<boolean>;
  /**
   * Repeats the end of a request to a Redis that may have lost its last writes. `known`: it had not lost it. `replayed`: it
   * had. If even the record was lost, the charge is written again, and the book takes it once; of the answer only what has to
   * be found later (`record`). `superseded`: another delivery has the request and ends it.
   */
  replayFinish(ref: DeliveryRef, sentSeq: number, ending: Ending): Promise<'known' | 'replayed' | 'superseded'>;
}

/** What finish.lua returns if the request has ended: one of these, or `charged` and micro-credits. */
const ENDED: ReadonlySet<unknown> = new Set(['finished', 'unheard']);
const CHARGED = 'charged ';

/** A whole answer, also where Redis had it piece by piece: its events have the same numbers. */
function answerOf(
  { requestId, tenantId }: DeliveryRef,
  { status, earlier = [], deltas: last, terminal, record, settlement, idempotency }: Ending,
): EndedAnswer & { idempotency?: IdempotencyName } {
  const deltas = [...earlier, ...last];
  const lastSeq = deltas.length + eventsOf(terminal);
  // Whoever stores or erases answers goes by when they ended.
  const ended = settlement === undefined ? {} : { finishedAt: String(settlement.finishedAt) };
  const fields = { ...record, ...ended, tenant: tenantId, state: 'done', status, sent: String(lastSeq) };
  const entries = [{ lastSeq, payload: encodeEntry(deltas, terminal) }];
  return { requestId, tenantId, fields, entries, ...(idempotency === undefined ? {} : { idempotency }) };
}

/** Whether Redis has let go of an answer by itself, so that a missing record says nothing. */
function isLetGo({ settlement, retentionMs }: Ending): boolean {
  return settlement !== undefined && settlement.finishedAt + retentionMs <= Date.now();
}

/** Ends requests through `end`, and repeats their ends to a Redis that may have lost them. */
export function createFinishRequest(
  client: RedisClient,
  keyspace: Keyspace,
  end: RollbackWrites['end'],
): FinishRequest {
  const answers = createAnswerCache(client, keyspace);
  const writeCharge = defineScript(client, 'owe', ['window', 'account']);
  /** Ends whose charge was written again. */
  const owed = new WeakSet<Ending>();
  /** Ends that nobody pays for. Remembered here, as Redis may lose the record that says so. */
  const unheard = new WeakSet<Ending>();
  /** Micro-credits of ends that cost more than the account had. */
  const charged = new WeakMap<Ending, number>();

  /** Whether an end stands, by what finish.lua says. */
  function hasEnded(outcome: ScriptReply, ending: Ending): boolean {
    if (outcome === 'unheard') unheard.add(ending);
    if (typeof outcome !== 'string' || !outcome.startsWith(CHARGED)) return ENDED.has(outcome);
    charged.set(ending, Number(outcome.slice(CHARGED.length)));
    return true;
  }

  /** The charge as it was made: never more than the account could pay. */
  function chargeOf(ending: Ending): SettlementRecord | undefined {
    const costMicro = charged.get(ending);
    if (ending.settlement === undefined || costMicro === undefined) return ending.settlement;
    return { ...ending.settlement, costMicro, estimated: true };
  }

  /** Writes a charge again, which then is pending; `isRunAgain`: unless whoever misses the record runs the request again. */
  async function owe({ shard, requestId, tenantId }: DeliveryRef, ending: Ending, isRunAgain: boolean): Promise<void> {
    const charge = chargeOf(ending);
    if (charge === undefined) return;
    // What was booked is no longer pending, so the script cannot tell by itself.
    const isFirst = !owed.has(ending) && !isLetGo(ending);
    const keys = keyspace.shard(shard);
    const { costMicro, promptTokens, completionTokens, acceptedAt, mode } = charge;
    await writeCharge(
      [
        keys.record(requestId),
        keys.account(tenantId),
        keys.pending(tenantId),
        keys.outbox,
        keys.testAllowance(tenantId, dayOf(acceptedAt)),
      ],
      [
        requestId,
        costMicro,
        promptTokens + completionTokens,
        monthOf(acceptedAt),
        BILLED[mode],
        JSON.stringify(charge),
        isRunAgain ? 1 : 0,
        isFirst ? 1 : 0,
      ],
    );
    owed.add(ending);
  }

  /**
   * Writes the charge of a request whose record is lost, and with `isLost` the answer, if it has to be found later. The charge
   * comes first: an answer that is there says that it was written, and a Redis that is full takes charges only. Text of earlier
   * deliveries is not known here.
   */
  async function bringBack(ref: DeliveryRef, sentSeq: number, ending: Ending, isLost: boolean): Promise<void> {
    const { record, earlier = [], retentionMs } = ending;
    const isWhole = isLost && record !== undefined && earlier.length === sentSeq && !isLetGo(ending);
    await owe(ref, ending, record !== undefined && !isWhole);
    if (isWhole)
      await answers.restore(ref.shard, answerOf(ref, ending), { ttlMs: retentionMs, namedMs: STORED_ANSWER_MS });
  }

  return {
    async finish(ref, sentSeq, ending) {
      return hasEnded(await end(ref, sentSeq, ending), ending);
    },

    async replayFinish(ref, sentSeq, ending) {
      const { record } = keyspace.shard(ref.shard);
      const [state, untold, fence] = await client.hmget(record(ref.requestId), 'state', 'untold', 'fence');
      const { settlement, ...rest } = ending;
      const isDue = settlement !== undefined && !unheard.has(ending);
      // An answer that was put back from elsewhere has no fence, and says nothing of its charge.
      if (state === 'done' && fence === null && isDue) await owe(ref, ending, false);
      if (state === 'done') return 'known';
      // A line was taken out of its queue before anybody could say that it has ended, and its result does not say so yet.
      const isTakenOut = state === 'void' && untold !== null && ending.record !== undefined;
      const outcome = isTakenOut ? 'missing' : await end(ref, sentSeq, isDue ? ending : { ...rest, costMicro: 0 });
      if (hasEnded(outcome, ending)) return 'replayed';
      if (outcome !== 'missing' && outcome !== 'void') return 'superseded';
      if (isDue) await bringBack(ref, sentSeq, ending, outcome === 'missing');
      return 'replayed';
    },
  };
}
