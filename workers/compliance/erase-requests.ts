import { setTimeout as pause } from 'node:timers/promises';

import type { ComplianceSubject, KnownRequest } from '../../shared/contracts/compliance.ts';
import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import type { KeyMode, SearchedSpace } from '../../shared/contracts/space.ts';
import type { Pseudonyms } from '../../shared/domain/pseudonyms.ts';
import { seqAt } from '../../shared/domain/request-times.ts';
import type { ConversationEraser } from '../../shared/mongo/compliance/conversation-eraser.ts';
import type { ErasureRepository } from '../../shared/mongo/compliance/erasure-repository.ts';
import type { DeliveryRef } from '../../shared/requests/delivery.ts';
import type { OutboxSearch } from '../../shared/requests/outbox.ts';
import type { RecordStore } from '../../shared/requests/record-store.ts';
import type { ErasableRequest, RequestEraser } from '../../shared/requests/request-eraser.ts';
import type { JobHands } from './run-job.ts';

const ENTITY_FIELD = /("entityId"\s*:\s*)("(?:[^"\\]|\\.)*")/g;

const isWithin = ({ tenantId, mode }: SearchedSpace, row: { tenantId: string; mode: KeyMode }) =>
  row.tenantId === tenantId && (mode === 'any' || row.mode === mode);

/** Undefined: not a valid JSON string. */
function textOf(quoted: string): string | undefined {
  try {
    // If quoted text parses at all, it is a string.
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}

/** True for a record that names the subject and was accepted up to `seq`; a pseudonym names nobody. */
function isRecordOf(subject: ComplianceSubject, seq: number, pseudonyms: Pseudonyms) {
  const { tenantId, entityId } = subject;
  return (record: SettlementRecord): boolean =>
    isWithin(subject, record) &&
    seqAt(record.acceptedAt) <= seq &&
    (entityId === undefined
      ? record.entityId !== undefined && !pseudonyms.isOne(tenantId, record.entityId)
      : record.entityId === entityId);
}

/**
 * Replaces the subject's names in a dead letter by pseudonyms; undefined: there are none. It may not be a valid record,
 * so it is treated as plain text. The entity is replaced only in its own field: an entity may be called `chat` or
 * `live`, and the rest is somebody's money.
 */
function withoutSubject(
  raw: string,
  { tenantId, mode, entityId }: ComplianceSubject,
  pseudonyms: Pseudonyms,
): string | undefined {
  const isOwn = raw.includes(JSON.stringify(tenantId)) && (mode === 'any' || raw.includes(`"mode":"${mode}"`));
  if (!isOwn) return undefined;
  const text = raw.replaceAll(ENTITY_FIELD, (field, before: string, quoted: string) => {
    // The expression may match a JSON string that is not valid.
    const plain = textOf(quoted);
    const isMeant = entityId === undefined ? plain !== undefined : plain === entityId;
    if (plain === undefined || !isMeant || pseudonyms.isOne(tenantId, plain)) return field;
    return before + JSON.stringify(pseudonyms.of(tenantId, plain));
  });
  return text === raw ? undefined : text;
}

/** Undefined `entityId`: all of the tenant's requests are deleted. */
export interface DeletedSubject extends ComplianceSubject {
  shard: number;
}

export interface EraseRequestsDeps {
  traces: RequestEraser;
  outbox: OutboxSearch;
  records: RecordStore;
  known: ConversationEraser;
  /** Removes a request's job from its queue, unless a worker has taken the job. */
  removeJob: (shard: number, requestId: string) => Promise<void>;
  pseudonyms: Pseudonyms;
}

/** Ends the requests of a deleted subject and erases what they left in Redis. Every call is safe to repeat. */
export type EraseRequests = ReturnType<typeof createEraseRequests>;

/** The first polls come quickly, because requests usually end soon; later ones spare a Redis that is behind. */
const POLL_MS = 100;
const POLL_MAX_MS = 1_000;
/** A running request learns of its cancellation within 3 s; the requests of a dead worker are ended within 20 s. */
const END_WAIT_MS = 60_000;
const AT_ONCE = 200;

const isOpen = ({ state }: ErasableRequest) => state === 'accepted' || state === 'running';

/** Polls until `isDone`; rejects if that takes too long, and the job is then tried again. */
async function until(isDone: () => Promise<boolean>, what: string, { signal }: JobHands): Promise<void> {
  const deadline = performance.now() + END_WAIT_MS;
  for (let pauseMs = POLL_MS; !(await isDone()); pauseMs = Math.min(pauseMs * 2, POLL_MAX_MS)) {
    if (performance.now() > deadline) throw new Error(`${what} takes longer than ${END_WAIT_MS / 1000} s`);
    await pause(pauseMs, undefined, { signal });
  }
}

/** The subject's requests known to Redis and to MongoDB, some at a time; a request may come more than once. */
async function* requestsOf(
  { traces, known, pseudonyms }: EraseRequestsDeps,
  subject: DeletedSubject,
  which: 'open' | 'all',
): AsyncGenerator<KnownRequest[]> {
  const { tenantId, shard, entityId } = subject;
  if (entityId === undefined) {
    if (which === 'open') yield (await traces.openOf(shard, tenantId)).map((requestId) => ({ requestId }));
    else for await (const ids of traces.left(shard, tenantId)) yield ids.map((requestId) => ({ requestId }));
  } else {
    const ids = await traces.ofEntity(shard, tenantId, pseudonyms.of(tenantId, entityId));
    for (let from = 0; from < ids.length; from += AT_ONCE)
      yield ids.slice(from, from + AT_ONCE).map((requestId) => ({ requestId }));
  }
  yield* known.requests(subject, pseudonyms);
}

async function cancelRequest(
  { records, removeJob }: EraseRequestsDeps,
  { tenantId, mode, shard }: DeletedSubject,
  { requestId, keyId }: ErasableRequest,
): Promise<void> {
  await records.cancel({ shard, tenantId, mode, keyId }, requestId);
  await removeJob(shard, requestId);
}

async function cancelOpen(
  deps: EraseRequestsDeps,
  subject: DeletedSubject,
  seq: number,
  { signal }: JobHands,
): Promise<string[]> {
  const cancelled = new Set<string>();
  for await (const requests of requestsOf(deps, subject, 'open')) {
    signal.throwIfAborted();
    const ids = requests.map(({ requestId }) => requestId);
    const found = (await deps.traces.look(subject.shard, ids)).filter(
      (trace) => isOpen(trace) && isWithin(subject, trace) && trace.seq <= seq,
    );
    for (const trace of found) {
      await cancelRequest(deps, subject, trace);
      cancelled.add(trace.requestId);
    }
  }
  return [...cancelled];
}

export function createEraseRequests(deps: EraseRequestsDeps) {
  const { traces, outbox, pseudonyms } = deps;

  return {
    /** Cancels open requests accepted up to `seq`, and waits for them to end. Returns how many there were. */
    async end(subject: DeletedSubject, seq: number, hands: JobHands): Promise<number> {
      const cancelled = await cancelOpen(deps, subject, seq, hands);
      const hasEnded = async () => !(await traces.look(subject.shard, cancelled)).some(isOpen);
      await until(hasEnded, 'The end of cancelled requests', hands);
      return cancelled.length;
    },

    /** Waits until their charges are booked; settlement names no erased entity (shared/erasure-gate.ts). */
    async settled(subject: DeletedSubject, seq: number, hands: JobHands): Promise<void> {
      const { shard } = subject;
      const isOwn = isRecordOf(subject, seq, pseudonyms);
      // The outbox grows only at its end, so entries that were passed over need not be read again.
      let from: string | undefined;
      const isSettled = async () => {
        from = await outbox.find(shard, isOwn, from);
        return from === undefined;
      };
      await until(isSettled, 'The settlement of ended requests', hands);
      await outbox.rewriteDeadLetters(shard, (raw) => withoutSubject(raw, subject, pseudonyms));
    },

    /** Returns how many requests had left something. */
    async erase(subject: DeletedSubject, seq: number, hands: JobHands): Promise<number> {
      const { shard } = subject;
      let erased = 0;
      for await (const requests of requestsOf(deps, subject, 'all')) {
        hands.signal.throwIfAborted();
        const outcomes = await Promise.all(requests.map((request) => traces.erase(shard, subject, request, seq)));
        erased += outcomes.filter((outcome) => outcome === 'erased').length;
      }
      return erased;
    },

    async unlist(subject: DeletedSubject, seq: number): Promise<void> {
      const { tenantId, shard, entityId, mode } = subject;
      if (entityId === undefined) return;
      const pseudonym = pseudonyms.of(tenantId, entityId);
      const listed = await traces.look(shard, await traces.ofEntity(shard, tenantId, pseudonym));
      // The mode of a request that is erased or has expired is unknown, but nothing is left of it either.
      const isMine = (trace: ErasableRequest) => trace.tenantId === '' || mode === 'any' || trace.mode === mode;
      const gone = listed
        .filter((trace) => isMine(trace) && !isOpen(trace) && trace.seq <= seq)
        .map(({ requestId }) => requestId);
      await traces.unlist(shard, tenantId, pseudonym, gone);
    },
  };
}

export interface EraseDeletedDeps {
  erasures: ErasureRepository;
  eraser: RequestEraser;
}

/**
 * Erases the rest of an ended request whose entity or tenant was deleted after its acceptance: a finished deletion does
 * not come back for it. The charge stays. Safe to repeat.
 */
export function createEraseDeleted({ erasures, eraser }: EraseDeletedDeps) {
  return async ({ shard, requestId, tenantId, facts }: DeliveryRef): Promise<void> => {
    if (facts === undefined) return;
    const { mode, seq, entityHash, idempotency } = facts;
    const space = { tenantId, mode };
    const upTo = await erasures.latest(space, entityHash);
    if (seq <= upTo) await eraser.erase(shard, space, { requestId, name: idempotency?.name }, upTo);
  };
}
