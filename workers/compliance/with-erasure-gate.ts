import { coverAnswers, coverConversations, coverLedger, createErasureGate } from './erasure-gate.ts';
import type { ErasureGate } from './erasure-gate.ts';
import { createPseudonyms } from '../../shared/domain/compliance/pseudonyms.ts';
import type { Pseudonyms } from '../../shared/domain/compliance/pseudonyms.ts';
import type { MongoConnection } from '../../shared/infra/mongo/connection.ts';
import { createAnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import type { AnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import { createConversationRepository } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import type { ConversationRepository } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import { createErasureRepository } from '../../shared/infra/mongo/compliance/erasure-repository.ts';
import type { ErasureRepository } from '../../shared/infra/mongo/compliance/erasure-repository.ts';
import { createSettlementRepository } from '../../shared/infra/mongo/accounts/settlement-repository.ts';
import type { SettlementRepository } from '../../shared/infra/mongo/accounts/settlement-repository.ts';

/** Where requests store what outlives them; whatever is stored for an entity passes the gate. */
export interface ErasureGatedStores {
  pseudonyms: Pseudonyms;
  erasures: ErasureRepository;
  gate: ErasureGate;
  conversations: ConversationRepository;
  answers: Pick<AnswerRepository, 'keep'>;
  ledger: SettlementRepository;
}

export function withErasureGate(mongo: MongoConnection, credentialsKey: Buffer): ErasureGatedStores {
  const pseudonyms = createPseudonyms(credentialsKey);
  const erasures = createErasureRepository(mongo);
  const gate = createErasureGate({ erasures, pseudonyms });
  return {
    pseudonyms,
    erasures,
    gate,
    conversations: coverConversations(createConversationRepository(mongo), gate),
    answers: coverAnswers(createAnswerRepository(mongo), gate),
    ledger: coverLedger(createSettlementRepository(mongo), gate),
  };
}
