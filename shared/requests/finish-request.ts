import { encodeEntry, eventsOf } from '../contracts/events.ts';
import type { Increment } from '../contracts/events.ts';
import type { Logger } from '../logging/logger.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import type { ReplayLog } from '../redis/redis-return.ts';
import { defineScript, textsOf } from '../redis/scripts.ts';
import type { Script, ScriptReply } from '../redis/scripts.ts';
import type { DeliveryRef, FinishInput, RecordSnapshot } from './delivery.ts';
import { toPutBack } from './rollback.ts';
import type { WriteWhole } from './rollback.ts';

/** finish.lua's other reply for an ended request is `charged` with micro-credits. */
const ENDED: ReadonlySet<unknown> = new Set(['finished', 'unbilled']);
const CHARGED = 'charged ';

/** The record is lost, or a tombstone. */
const isNowhere = (outcome: ScriptReply) => outcome === 'missing' || outcome === 'void';

/** A repeated charge may exceed what the account can pay by now. */
const UNBOUNDED_MICRO = Number.MAX_SAFE_INTEGER;

/** Redis may have expired the request: then a missing record does not mean that its end was lost. */
function isLetGo({ startedAt }: RecordSnapshot, { settlement, retentionMs }: FinishInput): boolean {
  return retentionMs > 0 && (settlement?.finishedAt ?? startedAt) + retentionMs <= Date.now();
}

function createOutcomes() {
  /** Kept here, as Redis may lose the record that says so. */
  const unbilled = new WeakSet<FinishInput>();
  /** Micro-credits of ends that cost more than the account had. */
  const charged = new WeakMap<FinishInput, number>();

  function hasEnded(outcome: ScriptReply, ending: FinishInput): boolean {
    if (outcome === 'unbilled') {
      unbilled.add(ending);
      ending.whenUnbilled?.();
    }
    if (typeof outcome !== 'string' || !outcome.startsWith(CHARGED)) return ENDED.has(outcome);
    charged.set(ending, Number(outcome.slice(CHARGED.length)));
    return true;
  }

  /** Repeats an end without an unbilled charge, and with no more than the account could pay. */
  function asItStood(ending: FinishInput): FinishInput {
    const { settlement, ...rest } = ending;
    if (settlement === undefined || unbilled.has(ending)) return { ...rest, costMicro: 0 };
    const costMicro = charged.get(ending);
    const charge = costMicro === undefined ? settlement : { ...settlement, costMicro, estimated: true };
    return { ...rest, settlement: charge, costMicro: charge.costMicro, overdraftMicro: UNBOUNDED_MICRO };
  }

  return { hasEnded, asItStood };
}

function createEnds(client: RedisClient, keyspace: Keyspace, writeWhole: WriteWhole) {
  const script = defineScript(client, 'finish');
  /** Adds the text that Redis has lost. Resolves with finish.lua's reply. */
  function end(
    ref: DeliveryRef,
    sentSeq: number,
    ending: FinishInput,
    earlier: readonly Increment[],
    restored?: RecordSnapshot,
  ): Promise<ScriptReply> {
    const { deltas } = ending;
    const firstSeq = sentSeq - earlier.length;
    const write = (known = sentSeq) => {
      // Earlier deliveries' text is unknown here, so it is not repeated.
      const missing = known === sentSeq ? deltas : [...earlier, ...deltas].slice(Math.max(0, known - firstSeq));
      return script(...toFinishCall(keyspace, ref, known, { ...ending, deltas: missing }, restored));
    };
    return writeWhole(ref, write, (found) => found, false);
  }

  /** If Redis has nothing of the request, repeats all that it had. */
  function endAgain(
    ref: DeliveryRef,
    sentSeq: number,
    ending: FinishInput,
    earlier: readonly Increment[],
  ): Promise<ScriptReply> {
    const { facts } = ref;
    if (facts === undefined || isLetGo(facts, ending)) return end(ref, sentSeq, ending, earlier);
    return end(ref, 0, { ...ending, deltas: [...earlier, ...ending.deltas] }, [], facts);
  }

  return { end, endAgain };
}

/** Repeats ends for a Redis that has lost them. */
export interface EndReplays {
  replayLog: ReplayLog;
  /** Erases a restored request, ended or not, if its entity or tenant was deleted meanwhile. */
  eraseDeleted: (ref: DeliveryRef) => Promise<void>;
  log: Logger;
}

/**
 * Keeps the ends of the last seconds in memory: in a Redis that comes back without them a request would run again, or
 * its charge would be lost. `replays` absent: nothing is repeated.
 */
export function createFinishRequest(
  client: RedisClient,
  keyspace: Keyspace,
  writeWhole: WriteWhole,
  replays: EndReplays | undefined,
) {
  const { end, endAgain } = createEnds(client, keyspace, writeWhole);
  const { hasEnded, asItStood } = createOutcomes();

  /** Not awaited: MongoDB may be away, and others must find the end before they run the request again. */
  function eraseIfDeleted(ref: DeliveryRef): void {
    const { requestId, tenantId } = ref;
    replays?.eraseDeleted(ref).catch((error: unknown) => {
      const fields = { requestId, tenantId, error };
      replays.log.warn('Whether a request that was put back has been deleted is not known.', fields);
    });
  }

  async function replay(ref: DeliveryRef, ...end: [number, FinishInput, readonly Increment[]]): Promise<void> {
    if ((await store.replayFinish(ref, ...end)) !== 'replayed') return;
    const { requestId, tenantId } = ref;
    replays?.log.warn('Redis had lost that a request was finished; its end was replayed.', { requestId, tenantId });
    eraseIfDeleted(ref);
  }

  const store = {
    /**
     * `sentSeq`: the last event before this; `earlier`: appended by this delivery, in case Redis has lost some. False:
     * this delivery no longer owns the request.
     */
    async finish(
      ref: DeliveryRef,
      sentSeq: number,
      ending: FinishInput,
      earlier: readonly Increment[] = [],
    ): Promise<boolean> {
      if (!hasEnded(await end(ref, sentSeq, ending, earlier), ending)) return false;
      if (ref.wasRestored === true) eraseIfDeleted(ref);
      const { shard, requestId, tenantId } = ref;
      // Drops the body, which may be large and is needed no more. Even an end without a charge is noted: the request
      // could otherwise run again although its caller was told that it failed.
      const kept = { ...ref, envelope: undefined };
      replays?.replayLog.note(() => replay(kept, sentSeq, ending, earlier), { shard, requestId, tenantId });
      return true;
    },

    /**
     * Repeats an end to a Redis that may have lost its last writes. `known`: not lost. `replayed`: end and charge, and
     * with its `facts` the request, are written again. `superseded`: another delivery has the request and ends it, or
     * its caller was told that it failed.
     */
    async replayFinish(
      ref: DeliveryRef,
      sentSeq: number,
      ending: FinishInput,
      earlier: readonly Increment[] = [],
    ): Promise<'known' | 'replayed' | 'superseded'> {
      const { record, outbox } = keyspace.shard(ref.shard);
      const again = asItStood(ending);
      const charge = again.settlement;
      const names = ['state', 'fence', 'voidUnconfirmed', 'erased'] as const;
      const [state, fence, ...marks] = await client.hmget(record(ref.requestId), ...names);
      // An answer restored from MongoDB has no fence, and says nothing of its charge.
      if (state === 'done' && (fence !== null || charge === undefined)) return 'known';
      const outcome = await endAgain(ref, sentSeq, again, earlier);
      if (hasEnded(outcome, ending)) return 'replayed';
      // The caller was told that the request failed, so it is not charged.
      const isForGood = outcome === 'void' && marks.every((mark) => mark === null);
      if (isForGood || !isNowhere(outcome)) return 'superseded';
      // Charged even if the request cannot be restored; the ledger takes a charge once.
      if (charge !== undefined) await client.xadd(outbox, '*', 's', JSON.stringify(charge));
      return 'replayed';
    },
  };
  return store;
}

function keysOf(keyspace: Keyspace, { shard, requestId, tenantId, keyId, queue }: DeliveryRef): string[] {
  const keys = keyspace.shard(shard);
  return [
    keys.record(requestId),
    keys.body(requestId),
    keys.inflight,
    keys.account(tenantId),
    keys.pending(tenantId),
    keys.outbox,
    keys.tokenWindow(keyId),
    keys.meanCompletion(keyId),
    keys.queueStatistics(queue),
    keys.answer(requestId),
    keys.open(tenantId),
    keys.job(queue, requestId),
    keys.active(queue),
  ];
}

/** Names are for the reader; finish.lua takes the values in this order. */
function shortTextsOf(
  { fence, owner = '', queue }: DeliveryRef,
  sentSeq: number,
  lastSeq: number,
  ending: FinishInput,
): (string | number)[] {
  const { status, terminal, costMicro, settlement, retentionMs, endsJob = false } = ending;
  const { unbilledTokens = 0, unpaidTokens = 0, overdraftMicro = 0 } = ending;
  const { promptTokens, completionTokens } = terminal.usage;
  const totalTokens = promptTokens + completionTokens;
  return Object.values({
    costMicro,
    totalTokens,
    completionTokens,
    keptTokens: unbilledTokens + (settlement === undefined ? 0 : totalTokens),
    unpaidTokens,
    overdraftMicro,
    fence,
    lastSeq,
    follows: sentSeq,
    status,
    retentionMs,
    owner,
    queue,
    endsJob: endsJob ? 1 : 0,
  });
}

/**
 * `sentSeq`: the last event before this end; `restored`: the record of a request whose end stood before, with all its
 * text, for a Redis that has lost everything.
 */
function toFinishCall(
  keyspace: Keyspace,
  ref: DeliveryRef,
  sentSeq: number,
  ending: FinishInput,
  restored: RecordSnapshot | undefined,
): Parameters<Script> {
  const { deltas, terminal, settlement, notice } = ending;
  const lastSeq = sentSeq + deltas.length + eventsOf(terminal);
  const entry = encodeEntry(deltas, terminal);
  const head = ref.owner === undefined ? `${lastSeq}` : `${lastSeq} ${ref.owner}`;
  const again = restored && toPutBack(keyspace, ref, restored);
  return [
    [...keysOf(keyspace, ref), ...(again?.names ?? [])],
    [
      ref.requestId,
      textsOf(shortTextsOf(ref, sentSeq, lastSeq, ending)),
      // A whole answer is stored with its head; see emit_whole in answers.lua.
      sentSeq === 0 ? `${head}\n${entry}` : entry,
      settlement === undefined ? '' : JSON.stringify(settlement),
      notice === undefined ? '' : JSON.stringify(notice),
      ...(again?.known ?? []),
    ],
  ];
}
