import type { createClaim } from './claim.ts';
import type { createConclude } from './conclude.ts';
import type { createFinish } from './finish.ts';
import { whileOwned } from './stage.ts';
import type { Assembled, Claimed, Delivery, Ended, Generated, Outcome, Routed, Stage, WithEntity } from './stage.ts';
import type { createStoreAnswer } from './save-answer.ts';

export interface Stages {
  claim: ReturnType<typeof createClaim>;
  loadContext: Stage<Claimed, WithEntity>;
  assemblePrompt: Stage<WithEntity, Assembled>;
  moderate: Stage<Assembled, Assembled>;
  selectRoute: Stage<Assembled, Routed>;
  generate: Stage<Routed, Generated>;
  saveTurn: Stage<Generated, Generated>;
  conclude: ReturnType<typeof createConclude>;
  finish: ReturnType<typeof createFinish>;
  storeAnswer: ReturnType<typeof createStoreAnswer>;
}

/** Undefined: another delivery or the sweep ends the request, or has ended it. */
export type RunPipeline = (delivery: Delivery) => Promise<Ended | undefined>;

/**
 * The order of the stages, and nothing else. Resolves when this delivery has nothing left to do, whoever ends the
 * request; rejects only if a store cannot be reached.
 */
export function createPipeline(stages: Stages): RunPipeline {
  async function answer(claimed: Claimed): Promise<Outcome> {
    const withEntity = await whileOwned(stages.loadContext, claimed);
    const assembled = await stages.assemblePrompt(withEntity);
    const moderated = await whileOwned(stages.moderate, assembled);
    const routed = await whileOwned(stages.selectRoute, moderated);
    const generated = await stages.generate(routed);
    const { outcome } = await stages.saveTurn(generated);
    return outcome;
  }

  return async (delivery) => {
    const claimed = await stages.claim(delivery);
    if (claimed === undefined) return undefined;
    try {
      const outcome = await answer(claimed).catch((error: unknown) => stages.conclude(claimed, error));
      if (outcome === undefined) return undefined;
      const isFinished = await stages.finish(claimed, outcome);
      if (isFinished) await stages.storeAnswer(claimed);
      return isFinished ? { run: claimed, outcome } : undefined;
    } finally {
      claimed.lease.release();
    }
  };
}
