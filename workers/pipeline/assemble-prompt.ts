import { contextInstruction } from '../../shared/domain/prompt/context-instruction.ts';
import { countBytes, countPrompt } from '../../shared/domain/prompt/fit-window.ts';
import type { Assembled, Stage, WithEntity } from './stage.ts';

/** Like the ingress at admission (design.md section 6): an estimate that needs no tokenizer. */
const BYTES_PER_TOKEN = 4;

/**
 * Puts the context instruction ahead of history and submitted messages. History that admission could not know of
 * raises hold and token weight before the provider is called.
 */
export function createAssemblePrompt(): Stage<WithEntity, Assembled> {
  return async (run) => {
    const { envelope, entity, history, submitted, lease } = run;
    const instruction = contextInstruction([envelope.request, entity?.context, envelope.tenant]);
    const all = [...(instruction === undefined ? [] : [instruction]), ...history, ...submitted];
    const promptTokens = Math.ceil(countPrompt(all, countBytes) / BYTES_PER_TOKEN);
    lease.need({ promptTokens, completionTokens: 0 });
    if (history.length > 0) await lease.renew();
    return { ...run, prompt: { instruction, history, submitted } };
  };
}
