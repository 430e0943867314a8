import { encodeEntry, eventsOf } from '../../../contracts/events.ts';
import type { Keyspace } from '../keyspace.ts';
import { textsOf } from '../scripts.ts';
import type { Script } from '../scripts.ts';
import { toPutBack } from './put-back-call.ts';
import type { DeliveryRef, Ending } from './running-request.ts';

function keysOf(keyspace: Keyspace, { shard, requestId, tenantId, keyId, queue }: DeliveryRef): string[] {
  const keys = keyspace.shard(shard);
  return [
    keys.record(requestId),
    keys.body(requestId),
    keys.inflight,
    keys.account(tenantId),
    keys.pending(tenantId),
    keys.outbox,
    keys.keyUse(keyId),
    keys.meanCompletion(keyId),
    keys.queueStatistics(queue),
    keys.answer(requestId),
    keys.open(tenantId),
    keys.job(queue, requestId),
    keys.active(queue),
  ];
}

/** Named for the reader; finish.lua takes the values in this order. */
function shortTextsOf(
  { fence, owner = '', queue }: DeliveryRef,
  sentSeq: number,
  lastSeq: number,
  {
    status,
    terminal,
    costMicro,
    settlement,
    retentionMs,
    unbilledTokens = 0,
    unpaidTokens = 0,
    overdraftMicro = 0,
    jobLock = '',
  }: Ending,
): (string | number)[] {
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
    jobLock,
  });
}

/** Keys and arguments of finish.lua. `sentSeq`: sequence number of the last event before this end. */
export function toFinishCall(
  keyspace: Keyspace,
  ref: DeliveryRef,
  sentSeq: number,
  ending: Ending,
): Parameters<Script> {
  const { deltas, terminal, settlement, notice, putsBack } = ending;
  const lastSeq = sentSeq + deltas.length + eventsOf(terminal);
  const entry = encodeEntry(deltas, terminal);
  const head = ref.owner === undefined ? `${lastSeq}` : `${lastSeq} ${ref.owner}`;
  const again = putsBack && ref.facts !== undefined ? toPutBack(keyspace, ref, ref.facts) : undefined;
  return [
    [...keysOf(keyspace, ref), ...(again?.names ?? [])],
    [
      ref.requestId,
      textsOf(shortTextsOf(ref, sentSeq, lastSeq, ending)),
      // A whole answer is stored with its head; see emit_whole in emit.lua.
      sentSeq === 0 ? `${head}\n${entry}` : entry,
      settlement === undefined ? '' : JSON.stringify(settlement),
      notice === undefined ? '' : JSON.stringify(notice),
      ...(again?.known ?? []),
    ],
  ];
}
