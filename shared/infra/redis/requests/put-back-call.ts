import type { RequestEnvelope } from '../../../contracts/jobs.ts';
import { STORED_ANSWER_MS } from '../../../contracts/stored-answer.ts';
import { dayOf, monthOf } from '../../../domain/pricing/pricing.ts';
import type { Keyspace } from '../keyspace.ts';
import { textsOf } from '../scripts.ts';
import type { Script } from '../scripts.ts';
import { BILLED } from './record-store.ts';
import type { DeliveryRef, RecordFacts } from './running-request.ts';

/** More than the clocks of two servers differ. */
const SLACK_MS = 60_000;

function fieldsOf(keyspace: Keyspace, { shard, tenantId, keyId, queue }: DeliveryRef, facts: RecordFacts) {
  const { tier, mode, acceptedAt, startedAt, seq, deadline, metadataJson, rates, terms } = facts;
  const allowance = keyspace.shard(shard).testAllowance(tenantId, dayOf(acceptedAt));
  return {
    tenant: tenantId,
    key: keyId,
    billed: BILLED[mode],
    tier,
    month: monthOf(acceptedAt),
    acceptedAt,
    startedAt,
    seq,
    deadline,
    ...(rates === undefined ? {} : { rates: `${rates.promptMicro} ${rates.completionMicro}` }),
    ...Object.fromEntries(Object.entries(terms).filter(([, value]) => value !== '')),
    ...(queue === 'batch' ? { lane: queue } : {}),
    ...(mode === 'test' ? { allowance } : {}),
    ...(metadataJson === undefined ? {} : { metadata: metadataJson }),
  };
}

/** The keys by which put-back.lua makes the request known again, and what the record should contain. */
export function toPutBack(keyspace: Keyspace, ref: DeliveryRef, facts: RecordFacts) {
  const { shard, requestId, tenantId, keyId } = ref;
  const { endpoint, idempotency, entityHash, acceptedAt } = facts;
  const keys = keyspace.shard(shard);
  const record = keys.record(requestId);
  return {
    names: [
      idempotency === undefined ? record : keys.idempotency(idempotency.name),
      entityHash === undefined ? record : keys.entityRequests(tenantId, entityHash),
      keys.keyRpm(keyId),
      keys.throttle(endpoint, keyId),
      keys.daily(keyId),
      keys.account(tenantId),
    ],
    known: [
      idempotency === undefined ? '' : `${requestId} ${idempotency.fingerprint} ${tenantId}`,
      STORED_ANSWER_MS,
      acceptedAt,
      ...Object.entries(fieldsOf(keyspace, ref, facts)).flat(),
    ],
  };
}

/** Keys and arguments of put-back-running.lua. */
export function toPutBackRunning(
  keyspace: Keyspace,
  ref: DeliveryRef,
  {
    facts,
    envelope,
    leaseMs,
    awayMs,
  }: { facts: RecordFacts; envelope: RequestEnvelope; leaseMs: number; awayMs: number },
): Parameters<Script> {
  const { shard, requestId, tenantId, fence, owner = '', queue } = ref;
  const { retentionMs } = envelope;
  const { acceptedAt, startedAt: claimedAt, seq, deadline } = facts;
  const keys = keyspace.shard(shard);
  const { names, known } = toPutBack(keyspace, ref, facts);
  const lifeMs = Math.max(0, deadline - acceptedAt) + retentionMs + SLACK_MS;
  return [
    [
      keys.record(requestId),
      keys.stream(requestId),
      keys.answer(requestId),
      ...names,
      keys.body(requestId),
      keys.inflight,
      keys.open(tenantId),
      keys.incarnation,
      keys.ended(requestId),
    ],
    [
      // Named for the reader; put-back-running.lua takes the values in this order.
      textsOf(
        Object.values({
          requestId,
          fence,
          owner,
          leaseMs,
          lifeMs,
          retentionMs,
          queue,
          acceptedAt,
          seq,
          awayMs,
          claimedAt,
        }),
      ),
      JSON.stringify(envelope),
      ...known,
    ],
  ];
}
