import { mergeHistory } from '../../shared/domain/history.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { ConversationRepository, StoredEntity } from '../../shared/mongo/entities/conversation-repository.ts';
import { contextInstruction, resolveContext } from './context-instruction.ts';
import type { Assembled, Claimed, Stage, WithEntity } from './stage.ts';

/** Reads the entity's memory. Without an `entity_id` the request needs no database. */
export function createLoadContext(conversations: ConversationRepository): Stage<Claimed, WithEntity> {
  return async (run) => {
    const { request } = run.envelope;
    if (request.entityId === undefined) {
      return { ...run, entity: undefined, history: [], submitted: request.messages };
    }
    let stored: StoredEntity | undefined;
    try {
      stored = await conversations.find(run.envelope, request.entityId);
      // Its turn would make it, after a provider was paid.
      if (stored === undefined && run.envelope.retentionMs > 0) await conversations.assertRoom(run.envelope);
    } catch (cause) {
      if (cause instanceof ServiceError) throw cause;
      throw new ServiceError(
        'model_unavailable',
        "The entity's conversation cannot be read at the moment; try again shortly.",
        {
          cause,
          retryAfterSeconds: 1,
        },
      );
    }
    const { history, submitted, unseen } = mergeHistory(stored?.history ?? [], request.messages);
    const { subject, grade } = stored ?? {};
    const context = { ...(subject === undefined ? {} : { subject }), ...(grade === undefined ? {} : { grade }) };
    return { ...run, entity: { rowId: stored?.rowId, context, unseen }, history, submitted };
  };
}

/** Puts the context instruction ahead of history and submitted messages. */
export function createAssemblePrompt(): Stage<WithEntity, Assembled> {
  return (run) => {
    const { envelope, entity, history, submitted } = run;
    if (envelope.request.task !== undefined)
      return Promise.resolve({ ...run, context: [], prompt: { instruction: undefined, history, submitted } });
    const context = resolveContext({ request: envelope.request, entity: entity?.context, tenant: envelope.tenant });
    const prompt = { instruction: contextInstruction(context), history, submitted };
    return Promise.resolve({ ...run, context, prompt });
  };
}
