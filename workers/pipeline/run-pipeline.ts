/**
 * The order of the stages: what a worker does with one delivery of a request.
 *
 * - **claim** makes the delivery the request's owner: its number, the fence, and the claim's name stand in the record.
 *   Every later write names both and is refused otherwise, in the script that would have written. So a delivery that
 *   another one has overtaken can send nothing and charge nothing, whatever it does.
 * - The **lease** of 10 s is renewed every 3 s (claim.ts). The renewal grants credits, budget and allowance, which
 *   spending.ts turns into text that may leave, and says why to stop: cancelled, abandoned, superseded, out of credits,
 *   past the deadline. All of that is one abort signal.
 * - **build-prompt, moderate, generate** make the answer. Before the first text another call may replace a failed one;
 *   after it a failure ends the request with a typed error and the usage so far.
 * - **finish** writes the turn before the last event, so that the caller's next request finds it, and ends the request;
 *   **conclude** turns a failure, a cancel or a passed deadline into such an end.
 *
 * Every stage may run twice. If a worker dies before text was sent, the next delivery starts from the beginning and the
 * client sees pings. If text was sent, the next delivery only ends the request: a second answer would not continue the
 * first. A stage imports no other stage; each says in stage.ts what it adds.
 */
import { readTokens } from './claim.ts';
import type { createClaim } from './claim.ts';
import type { createConclude } from './conclude.ts';
import type { createFinish, createStoreAnswer } from './finish.ts';
import { whileOwned } from './stage.ts';
import type {
  Assembled,
  Claimed,
  Ended,
  Generated,
  HandedRequest,
  Outcome,
  Routed,
  Stage,
  WithEntity,
} from './stage.ts';

export interface Stages {
  claim: ReturnType<typeof createClaim>;
  loadContext: Stage<Claimed, WithEntity>;
  assemblePrompt: Stage<WithEntity, Assembled>;
  moderate: Stage<Assembled, Assembled>;
  classify: Stage<Claimed, Outcome>;
  selectRoute: Stage<Assembled, Routed>;
  generate: Stage<Routed, Generated>;
  saveTurn: Stage<Generated, Generated>;
  conclude: ReturnType<typeof createConclude>;
  finish: ReturnType<typeof createFinish>;
  storeAnswer: ReturnType<typeof createStoreAnswer>;
}

/** Undefined: another delivery or the sweep ends the request, or has ended it. */
export type RunPipeline = (handed: HandedRequest) => Promise<Ended | undefined>;

/**
 * The order of the stages, and nothing else. Resolves when this delivery has nothing left to do, whoever ends the
 * request; rejects only if a store cannot be reached.
 */
export function createPipeline(stages: Stages): RunPipeline {
  async function answer(claimed: Claimed): Promise<Outcome> {
    if (claimed.envelope.request.task?.kind === 'moderation') return whileOwned(stages.classify, claimed);
    const withEntity = await whileOwned(stages.loadContext, await readTokens(claimed));
    const assembled = await stages.assemblePrompt(withEntity);
    const moderated = await whileOwned(stages.moderate, assembled);
    const routed = await whileOwned(stages.selectRoute, moderated);
    const generated = await stages.generate(routed);
    const { outcome } = await stages.saveTurn(generated);
    return outcome;
  }

  return async (handed) => {
    const claimed = await stages.claim(handed);
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
