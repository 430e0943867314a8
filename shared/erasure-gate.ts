import type { SettlementRecord } from './contracts/settlement.ts';
import type { Space } from './contracts/space.ts';
import type { Pseudonyms } from './domain/pseudonyms.ts';
import { seqAt } from './domain/request-times.ts';
import type { AnswerRepository } from './mongo/requests/answer-repository.ts';
import type { ConversationRepository } from './mongo/entities/conversation-repository.ts';
import { createEntityRepository } from './mongo/entities/entity-repository.ts';
import { createErasureRepository, erasureIdsOf } from './mongo/compliance/erasure-repository.ts';
import type { ErasureRepository } from './mongo/compliance/erasure-repository.ts';
import type { SettlementRepository } from './mongo/accounts/settlement-repository.ts';
import { createAnswerRepository } from './mongo/requests/answer-repository.ts';
import { createConversationRepository } from './mongo/entities/conversation-repository.ts';
import type { MongoConnection } from './mongo/connection.ts';
import { createSettlementRepository } from './mongo/accounts/settlement-repository.ts';
import { putNewest } from './domain/bounded-map.ts';

/**
 * Guards whatever a request stores late: one accepted before its entity was deleted for compliance stores nothing of
 * it, and its charge carries the pseudonym. `seq`: place in the order of acceptance.
 */
export type ErasureGate = ReturnType<typeof createErasureGate>;

export function createErasureGate(deps: { erasures: ErasureRepository; pseudonyms: Pseudonyms }) {
  const { erasures, pseudonyms } = deps;

  function pseudonymOf(tenantId: string, entityId: string | undefined): string | undefined {
    return entityId === undefined ? undefined : pseudonyms.of(tenantId, entityId);
  }

  function erasedSeq(space: Space, entityId: string | undefined): Promise<number> {
    return erasures.latest(space, pseudonymOf(space.tenantId, entityId));
  }

  async function isErased(space: Space, entityId: string | undefined, seq: number): Promise<boolean> {
    return seq <= (await erasedSeq(space, entityId));
  }

  return {
    isErased,
    /** The entity was erased up to this place in the order of acceptance; 0: it was not. */
    erasedSeq,

    /** The entity's id, or its pseudonym once it is erased. */
    async nameOf(space: Space, entityId: string, seq: number): Promise<string> {
      return (await isErased(space, entityId, seq)) ? pseudonyms.of(space.tenantId, entityId) : entityId;
    },

    async pseudonymize(records: readonly SettlementRecord[]): Promise<SettlementRecord[]> {
      const ids = records.flatMap(({ tenantId, mode, entityId }) =>
        entityId === undefined ? [] : erasureIdsOf({ tenantId, mode }, pseudonyms.of(tenantId, entityId)),
      );
      if (ids.length === 0) return [...records];
      const erased = await erasures.latestOf([...new Set(ids)]);
      if (erased.size === 0) return [...records];
      return records.map((record) => {
        const { tenantId, mode, entityId, acceptedAt } = record;
        if (entityId === undefined) return record;
        const pseudonym = pseudonyms.of(tenantId, entityId);
        const upTo = erasureIdsOf({ tenantId, mode }, pseudonym).map((id) => erased.get(id) ?? 0);
        return seqAt(acceptedAt) <= Math.max(...upTo) ? { ...record, entityId: pseudonym } : record;
      });
    },
  };
}

/** Tells whether the entity or its history was deleted since that time; earlier requests are not run. */
export type IsDeletedSince = (space: Space, entityId: string | undefined, timeMs: number) => Promise<boolean>;

/** `nameOf`: as the gate has it. */
export function createDeletions(mongo: MongoConnection, pseudonyms: Pseudonyms) {
  const { erasedSeq, nameOf } = createErasureGate({ erasures: createErasureRepository(mongo), pseudonyms });
  const { forgottenSeq } = createEntityRepository(mongo);
  const isDeletedSince: IsDeletedSince = async (space, entityId, timeMs) => {
    const forgotten = entityId === undefined ? 0 : forgottenSeq(space, entityId);
    return seqAt(timeMs) <= Math.max(...(await Promise.all([erasedSeq(space, entityId), forgotten])));
  };
  return { isDeletedSince, nameOf };
}

function gateLedger(ledger: SettlementRepository, gate: ErasureGate): SettlementRepository {
  return { settle: async (records, now) => ledger.settle(await gate.pseudonymize(records), now) };
}

/** Some hundred bytes each. */
const ROWS_MAX = 10_000;

/**
 * Saves no turn of a request whose entity was erased after it was accepted.
 *
 * A deletion sets its mark, then deletes every row there is. So a row that is still there, written to by its own id,
 * has no later mark: a later deletion takes the turn with it. Only the mark of a deletion before the entity was made
 * anew has to be asked for, and that never changes for the row.
 */
export function gateConversations(conversations: ConversationRepository, gate: ErasureGate): ConversationRepository {
  const erasedBefore = new Map<string, number>();

  async function erasedBeforeRow(space: Space, entityId: string, rowId: string): Promise<number> {
    let seq = erasedBefore.get(rowId);
    if (seq === undefined) {
      seq = await gate.erasedSeq(space, entityId);
      putNewest(erasedBefore, rowId, seq, ROWS_MAX);
    }
    return seq;
  }

  return {
    ...conversations,
    async saveTurn(space, entityId, turn, options) {
      if (options.rowId !== undefined) {
        const erasedSeq = await erasedBeforeRow(space, entityId, options.rowId);
        if (turn.seq > erasedSeq) await conversations.saveTurn(space, entityId, turn, options);
        return;
      }
      if (await gate.isErased(space, entityId, turn.seq)) return;
      await conversations.saveTurn(space, entityId, turn, options);
      // A deletion sets its mark before it deletes. If both came between the look above and the write, the write has
      // brought the entity back.
      if (await gate.isErased(space, entityId, turn.seq)) await conversations.voidLater(space, entityId, turn, options);
    },
  };
}

export function gateAnswers(answers: AnswerRepository, gate: ErasureGate): AnswerRepository {
  return {
    ...answers,
    async store(answer) {
      const isErased = () => gate.isErased(answer, answer.entityId, seqAt(Number(answer.fields['acceptedAt'])));
      if (await isErased()) return;
      await answers.store(answer);
      // A deletion may have come between and found nothing, as with the turn of a conversation.
      if (await isErased()) await answers.remove(answer, answer.requestId, Number(answer.fields['finishedAt']));
    },
  };
}

export type ErasureGatedStores = ReturnType<typeof withErasureGate>;

export function withErasureGate(mongo: MongoConnection, pseudonyms: Pseudonyms) {
  const erasures = createErasureRepository(mongo);
  const gate = createErasureGate({ erasures, pseudonyms });
  return {
    erasures,
    gate,
    conversations: gateConversations(createConversationRepository(mongo), gate),
    answers: gateAnswers(createAnswerRepository(mongo), gate),
    ledger: gateLedger(createSettlementRepository(mongo), gate),
  };
}
