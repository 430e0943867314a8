import { setTimeout as pause } from 'node:timers/promises';

import { isMongoUnreachable } from '../../shared/infra/mongo/mongo-faults.ts';
import type { ConversationRepository } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Claimed, Generated, Stage } from './stage.ts';

export interface SaveTurnDeps {
  conversations: Pick<ConversationRepository, 'saveTurn'>;
  clock: Clock;
  log: Logger;
}

/** Longer than a replica set takes to choose another primary. */
const AWAY_MS = 20_000;
const AGAIN_MS = 500;

/**
 * Stores the turn before the terminal event, so that the caller's next request finds it. Only whole answers are stored
 * (docs/spec.md#history).
 */
export function createSaveTurn({ conversations, clock, log }: SaveTurnDeps): Stage<Generated, Generated> {
  /** Retries while MongoDB is unavailable: saved after the answer's end, the turn could miss the next prompt. */
  async function retryWhileMongoIsAway(store: () => Promise<void>, { signal }: Claimed['lease']): Promise<void> {
    const until = clock.now() + AWAY_MS;
    for (;;) {
      try {
        await store();
        return;
      } catch (error) {
        if (!isMongoUnreachable(error) || signal.aborted || clock.now() > until) throw error;
        await pause(AGAIN_MS);
      }
    }
  }

  return async (run) => {
    const { envelope, entity, outcome, answer, seq, claimedAt } = run;
    const { entityId } = envelope.request;
    // With no retention, a tenant's turns are not saved either.
    if (envelope.retentionMs === 0) return run;
    const isWhole = outcome.finishReason === 'stop' || outcome.finishReason === 'length';
    if (entityId === undefined || entity === undefined || !isWhole || answer.text === '') return run;
    const messages = [...entity.unseen, { role: 'assistant' as const, content: answer.text }];
    const turn = { requestId: envelope.requestId, seq, claimedAt, messages };
    answer.isTurnSaved = true;
    try {
      const { rowId } = entity;
      const options = { create: rowId === undefined, now: clock.now(), rowId };
      await retryWhileMongoIsAway(() => conversations.saveTurn(envelope, entityId, turn, options), run.lease);
    } catch (error) {
      // The answer exists and is charged, so the caller gets it; the log tells the operator that the turn is missing.
      log.error('A turn could not be stored in its entity.', {
        requestId: envelope.requestId,
        tenantId: envelope.tenantId,
        error,
      });
    }
    return run;
  };
}
