import { contextInstruction } from './prompt/context-instruction.ts';
import type { Assembled, Stage, WithEntity } from './stage.ts';

/** Puts the context instruction ahead of history and submitted messages. */
export function createAssemblePrompt(): Stage<WithEntity, Assembled> {
  return (run) => {
    const { envelope, entity, history, submitted } = run;
    const instruction = contextInstruction([envelope.request, entity?.context, envelope.tenant]);
    return Promise.resolve({ ...run, prompt: { instruction, history, submitted } });
  };
}
