import type { ConversationRepository } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import type { createClaim } from './claim.ts';
import { interruption } from './conclude.ts';
import type { createConclude } from './conclude.ts';
import type { createFinish } from './finish.ts';
import type { createStoreAnswer } from './store-answer.ts';
import { Stopped } from './stage.ts';
import type { Assembled, Claimed, Delivery, Generated, Outcome, Routed, Stage, WithEntity } from './stage.ts';

export interface Stages {
  claim: ReturnType<typeof createClaim>;
  moderate: Stage<Claimed, Claimed>;
  loadContext: Stage<Claimed, WithEntity>;
  assemblePrompt: Stage<WithEntity, Assembled>;
  selectRoute: Stage<Assembled, Routed>;
  generate: Stage<Routed, Generated>;
  saveTurn: Stage<Generated, Generated>;
  finish: ReturnType<typeof createFinish>;
  storeAnswer: ReturnType<typeof createStoreAnswer>;
  conclude: ReturnType<typeof createConclude>;
}

export type RunPipeline = (delivery: Delivery) => Promise<void>;

/**
 * The order of the stages, and nothing else. Resolves when this delivery has nothing left to do, whoever ends the
 * request; rejects only when Redis cannot be reached.
 */
export function createPipeline(stages: Stages, conversations: Pick<ConversationRepository, 'forget'>): RunPipeline {
  async function answer(claimed: Claimed): Promise<Generated> {
    if (claimed.interrupted) throw interruption();
    const { signal } = claimed.lease;
    const proceed = <T>(run: T): T => {
      if (signal.aborted) throw signal.reason instanceof Stopped ? signal.reason : new Stopped('superseded');
      return run;
    };
    const moderated = proceed(await stages.moderate(proceed(claimed)));
    const assembled = proceed(await stages.assemblePrompt(await stages.loadContext(moderated)));
    const generated = await stages.generate(await stages.selectRoute(assembled));
    return stages.saveTurn(generated);
  }

  return async (delivery) => {
    const claimed = await stages.claim(delivery);
    if (claimed === undefined) return;
    try {
      let outcome: Outcome | undefined;
      let remembered = false;
      try {
        ({ outcome } = await answer(claimed));
        remembered = claimed.envelope.request.entityId !== undefined;
      } catch (error) {
        outcome = await stages.conclude(claimed, error);
      }
      if (outcome === undefined) return;
      if (await stages.finish(claimed, outcome)) {
        await stages.storeAnswer(claimed);
        return;
      }
      const { tenantId, requestId, request } = claimed.envelope;
      const turn = { requestId, attempt: claimed.ref.fence };
      if (remembered && request.entityId !== undefined) await conversations.forget(tenantId, request.entityId, turn);
    } finally {
      claimed.lease.release();
    }
  };
}
