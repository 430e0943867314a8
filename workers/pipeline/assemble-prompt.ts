import { contextInstruction, resolveContext } from './prompt/context-instruction.ts';
import type { Assembled, Stage, WithEntity } from './stage.ts';

/** Puts the context instruction ahead of history and submitted messages. */
export function createAssemblePrompt(): Stage<WithEntity, Assembled> {
  return (run) => {
    const { envelope, entity, history, submitted } = run;
    const context = resolveContext({ request: envelope.request, entity: entity?.context, tenant: envelope.tenant });
    const prompt = { instruction: contextInstruction(context), history, submitted };
    return Promise.resolve({ ...run, context, prompt });
  };
}
