import { coverAnswers, coverConversations, coverLedger, createErasureGate } from './erasure-gate.ts';
import type { ErasureGate } from './erasure-gate.ts';
import { createPseudonyms } from '../../shared/domain/compliance/pseudonyms.ts';
import type { Pseudonyms } from '../../shared/domain/compliance/pseudonyms.ts';
import { createAnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import type { AnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import { createConversationRepository } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import type { ConversationRepository } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import { createErasureRepository } from '../../shared/infra/mongo/compliance/erasure-repository.ts';
import type { ErasureRepository } from '../../shared/infra/mongo/compliance/erasure-repository.ts';
import type { Models } from '../../shared/infra/mongo/models.ts';
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

export function withErasureGate(
  mongo: Parameters<typeof createSettlementRepository>[0],
  models: Models,
  credentialsKey: Buffer,
): ErasureGatedStores {
  const pseudonyms = createPseudonyms(credentialsKey);
  const erasures = createErasureRepository(models);
  const gate = createErasureGate({ erasures, pseudonyms });
  return {
    pseudonyms,
    erasures,
    gate,
    conversations: coverConversations(createConversationRepository(models), gate),
    answers: coverAnswers(createAnswerRepository(models), gate),
    ledger: coverLedger(createSettlementRepository(mongo, models), gate),
  };
}
