import type { ConversationRepository } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Claimed, Generated, Stage } from './stage.ts';

export interface SaveTurnDeps {
  conversations: Pick<ConversationRepository, 'remember'>;
  clock: Clock;
  log: Logger;
}

/**
 * Stores the turn before the terminal event, so that the caller's next request finds it. Only whole answers are stored
 * (docs/spec/contract.md section 4).
 */
export function createSaveTurn({ conversations, clock, log }: SaveTurnDeps): Stage<Generated, Generated> {
  return async (run) => {
    const { envelope, entity, outcome, answer, ref, seq } = run;
    const { entityId } = envelope.request;
    // A tenant that keeps nothing stores no turn either.
    if (envelope.retentionMs === 0) return run;
    const isWhole = outcome.finishReason === 'stop' || outcome.finishReason === 'length';
    if (entityId === undefined || entity === undefined || !isWhole || answer.text === '') return run;
    const messages = [...entity.unseen, { role: 'assistant' as const, content: answer.text }];
    const turn = { requestId: envelope.requestId, seq, attempt: ref.fence, messages };
    answer.isTurnSaved = true;
    try {
      const { rowId } = entity;
      await conversations.remember(envelope, entityId, turn, {
        create: rowId === undefined,
        now: clock.now(),
        rowId,
      });
    } catch (error) {
      // The answer exists and is charged: the caller gets it, and the operator hears that the turn is missing.
      log.error('A turn could not be stored in its entity.', {
        requestId: envelope.requestId,
        tenantId: envelope.tenantId,
        error,
      });
    }
    return run;
  };
}

/** Deletes the turn of a run whose end was refused: the delivery that owns the request stores its own. */
export function createDeleteTurn({ conversations }: { conversations: Pick<ConversationRepository, 'forget'> }) {
  return async ({ envelope, ref, answer }: Claimed): Promise<void> => {
    const { requestId, request } = envelope;
    if (request.entityId === undefined || answer.isTurnSaved !== true) return;
    await conversations.forget(envelope, request.entityId, { requestId, attempt: ref.fence });
  };
}
