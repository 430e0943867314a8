import { encodeEntry, eventsOf } from '../../../contracts/events.ts';
import type { EndedAnswer } from '../../../contracts/stored-answer.ts';
import type { SettlementRecord } from '../../../contracts/settlement.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import type { ScriptReply } from '../scripts.ts';
import type { RollbackWrites } from './rollback-writes.ts';
import type { DeliveryRef, Ending } from './running-request.ts';
import { createAnswerCache } from './stored-answers.ts';

export interface FinishRequest {
  /** `sentSeq`: sequence number of the last event before this. False: this delivery no longer owns the request. */
  finish(ref: DeliveryRef, sentSeq: number, ending: Ending): Promise<boolean>;
  /**
   * Repeats the end of a request to a Redis that may have lost its last writes. `known`: it had not lost it. `replayed`: it
   * had. If even the record was lost, the charge is written again, and the book takes it once; of the answer only what nobody
   * has but Redis (`record`). `superseded`: another delivery has the request and ends it.
   */
  replayFinish(ref: DeliveryRef, sentSeq: number, ending: Ending): Promise<'known' | 'replayed' | 'superseded'>;
}

/** What finish.lua returns if the request has ended: one of these, or `charged` and micro-credits. */
const ENDED: ReadonlySet<unknown> = new Set(['finished', 'unheard']);
const CHARGED = 'charged ';

/** A whole answer as Redis had it; one that was sent piece by piece has had a reader. */
function answerOf(
  { requestId, tenantId }: DeliveryRef,
  { status, deltas, terminal, record, settlement }: Ending,
): EndedAnswer {
  const lastSeq = deltas.length + eventsOf(terminal);
  // Whoever stores or erases answers goes by when they ended.
  const ended = settlement === undefined ? {} : { finishedAt: String(settlement.finishedAt) };
  const fields = { ...record, ...ended, tenant: tenantId, state: 'done', status, sent: String(lastSeq) };
  return { requestId, tenantId, fields, entries: [{ lastSeq, payload: encodeEntry(deltas, terminal) }] };
}

/** Ends requests through `end`, and repeats their ends to a Redis that may have lost them. */
export function createFinishRequest(
  client: RedisClient,
  keyspace: Keyspace,
  end: RollbackWrites['end'],
): FinishRequest {
  const answers = createAnswerCache(client, keyspace);
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

  /** Writes the charge of a request whose record is lost, and with `isWhole` the answer that nobody has but Redis. */
  async function bringBack(ref: DeliveryRef, sentSeq: number, ending: Ending, isWhole: boolean): Promise<void> {
    const { outbox } = keyspace.shard(ref.shard);
    await client.xadd(outbox, '*', 's', JSON.stringify(chargeOf(ending)));
    if (!isWhole || sentSeq > 0 || ending.record === undefined) return;
    await answers.restore(ref.shard, answerOf(ref, ending), { ttlMs: ending.retentionMs, namedMs: 0 });
  }

  return {
    async finish(ref, sentSeq, ending) {
      return hasEnded(await end(ref, sentSeq, ending), ending);
    },

    async replayFinish(ref, sentSeq, ending) {
      const { record } = keyspace.shard(ref.shard);
      const [state, untold] = await client.hmget(record(ref.requestId), 'state', 'untold');
      if (state === 'done') return 'known';
      const { settlement, ...rest } = ending;
      const isDue = settlement !== undefined && !unheard.has(ending);
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
