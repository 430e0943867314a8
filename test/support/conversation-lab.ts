import { createModels, ensureIndexes } from '../../shared/mongo/administration/catalogue.ts';
import { createConversationRepository } from '../../shared/mongo/entities/conversation-repository.ts';
import type { Turn } from '../../shared/mongo/entities/conversation-repository.ts';
import { openTestMongo, uniqueName } from './stores.ts';
import { useStarted } from './use-service.ts';

export const LIVE = { tenantId: 'ten_1', mode: 'live' } as const;
export const OTHER = { tenantId: 'ten_2', mode: 'live' } as const;
/** For the first turn of an entity. */
export const CREATE = { create: true, now: 1_000 };

/** A turn of one message, of the request of that number. */
export const replyOf = (seq: number, content: string): Turn => ({
  requestId: `req_${seq}`,
  seq,
  claimedAt: 1,
  messages: [{ role: 'assistant', content }],
});

async function startConversations(database: string) {
  const mongo = await openTestMongo(database);
  const models = createModels(mongo);
  await ensureIndexes(mongo);
  const conversations = createConversationRepository(mongo);
  return {
    mongo,
    models,
    conversations,
    /** The stored texts of an entity; undefined: it is unknown. */
    async textsOf(entityId: string): Promise<string[] | undefined> {
      return (await conversations.find(LIVE, entityId))?.history.map(({ content }) => content);
    },
    /** New entities of one tenant, with one turn each. Resolves with their ids. */
    async entitiesOf(names: readonly string[], textOf: (index: number) => string = () => 'first'): Promise<string[]> {
      const entityIds = names.map((name) => uniqueName(name));
      for (const [index, entityId] of entityIds.entries())
        await conversations.saveTurn(LIVE, entityId, replyOf(1, textOf(index)), CREATE);
      return entityIds;
    },
    close: () => mongo.close(),
  };
}

/** The conversations of a database of the test file's own. */
export function useConversations(database = uniqueName('conv-')) {
  return useStarted('conversations', () => startConversations(database));
}
