import { randomBytes } from 'node:crypto';

import { beforeAll, describe, expect, it } from '@jest/globals';

import type { ChatMessage } from '../../../shared/contracts/chat-request.ts';
import type { Space } from '../../../shared/contracts/space.ts';
import { createConversationRepository } from '../../../shared/mongo/entities/conversation-repository.ts';
import type { ConversationRepository, Turn } from '../../../shared/mongo/entities/conversation-repository.ts';
import { createModels, ensureIndexes } from '../../../shared/mongo/administration/catalogue.ts';
import type { Models } from '../../../shared/mongo/administration/catalogue.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const CREATE = { create: true, now: 1_000 };

const turn = (seq: number, content = `turn ${seq}`, more: Partial<Turn> = {}): Turn => ({
  requestId: `req_${seq}`,
  seq,
  claimedAt: 1,
  messages: [
    { role: 'user', content },
    { role: 'assistant', content: `reply to ${content}` },
  ],
  ...more,
});

const LIVE = { tenantId: 'ten_1', mode: 'live' } as const;

const messagesOf = (...turns: Turn[]): ChatMessage[] => turns.flatMap(({ messages }) => messages);

/** The same numbers in every run, 0 to 1. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 0x1_0000_0000;
  };
}

/** Turns with one more, in the order of acceptance; of two of one request that of the later delivery stays. */
function withTurn(turns: readonly Turn[], next: Turn): Turn[] {
  const mine = turns.find(({ requestId }) => requestId === next.requestId);
  const kept = mine !== undefined && mine.claimedAt > next.claimedAt ? mine : next;
  return [...turns.filter((each) => each !== mine), kept].sort((left, right) => left.seq - right.seq);
}

/** What is left of turns within the 50 messages that are kept. */
function lastMessages(turns: readonly Turn[]): Turn[] {
  let room = 50;
  return turns
    .toReversed()
    .map((each) => {
      const messages = room === 0 ? [] : each.messages.slice(-room);
      room -= messages.length;
      return { ...each, messages };
    })
    .filter(({ messages }) => messages.length > 0)
    .reverse();
}

describe('the stored conversation of an entity', () => {
  let models: Models;
  let conversations: ConversationRepository;
  const mongo = useStarted('mongo', () => openTestMongo(uniqueName('conv-')));
  beforeAll(async () => {
    models = createModels(mongo);
    await ensureIndexes(mongo);
    conversations = createConversationRepository(mongo);
  });

  const newEntity = () => `entity ${randomBytes(6).toString('hex')}`;

  async function history(entityId: string, space: Space = LIVE): Promise<ChatMessage[] | undefined> {
    return (await conversations.find(space, entityId))?.history;
  }

  it('is that of one turn after the other, whatever their order, and whichever way a turn is stored', async () => {
    const random = seeded(20_261_122);
    for (let round = 0; round < 8; round += 1) {
      const entityId = newEntity();
      let expected: Turn[] = [];
      for (let step = 0; step < 12; step += 1) {
        const seq = random() < 0.6 ? 10 + step : 1 + Math.floor(random() * 22);
        const messages = Array.from({ length: 1 + Math.floor(random() * 8) }, (_, index) => ({
          role: 'user' as const,
          content: `${step}.${index}`,
        }));
        const next = turn(seq, '', { claimedAt: 1 + Math.floor(random() * 3), messages });

        await conversations.saveTurn(LIVE, entityId, next, CREATE);

        expected = lastMessages(withTurn(expected, next));
        expect(await history(entityId)).toEqual(messagesOf(...expected));
      }
    }
  });

  it('sends a turn that comes in order alone, and has the server build no history', async () => {
    const entityId = newEntity();
    await conversations.saveTurn(LIVE, entityId, turn(1), CREATE);
    const updates: unknown[] = [];
    mongo.set('debug', (_collection: string, method: string, _filter: unknown, update: unknown) => {
      if (method === 'updateOne') updates.push(update);
    });

    await conversations.saveTurn(LIVE, entityId, turn(2), { create: false, now: 2_000 });
    const inOrder = updates.splice(0);
    await conversations.saveTurn(LIVE, entityId, turn(1), { create: false, now: 2_000 });

    mongo.set('debug', false);
    expect(inOrder).toEqual([expect.objectContaining({ $push: expect.anything() as unknown })]);
    expect(updates).toEqual([expect.objectContaining({ $push: expect.anything() as unknown }), expect.any(Array)]);
  });

  it('keeps the last 50 messages of a turn that is longer', async () => {
    const entityId = newEntity();
    const messages = Array.from({ length: 101 }, (_, index) => ({ role: 'user' as const, content: String(index) }));

    await conversations.saveTurn(LIVE, entityId, turn(1, '', { messages }), CREATE);

    expect((await history(entityId))?.map(({ content }) => content)).toEqual(
      messages.slice(-50).map(({ content }) => content),
    );
  });

  it('the stored conversation of an entity loses one deleted turn and nothing else', async () => {
    const entityId = newEntity();
    for (const seq of [1, 2, 3]) await conversations.saveTurn(LIVE, entityId, turn(seq), CREATE);

    await conversations.deleteTurn(LIVE, entityId, turn(2));
    await conversations.deleteTurn(LIVE, entityId, turn(2));

    expect(await history(entityId)).toEqual(messagesOf(turn(1), turn(3)));
  });

  it('is not made again by a turn in flight when the entity was deleted meanwhile', async () => {
    const entityId = newEntity();
    await conversations.saveTurn(LIVE, entityId, turn(1), CREATE);
    await models.entities.deleteOne({ tenantId: 'ten_1', entityId });

    await conversations.saveTurn(LIVE, entityId, turn(2), { create: false, now: 2_000 });

    expect(await conversations.find(LIVE, entityId)).toBeUndefined();
  });

  it('goes into no other row than the one that was found', async () => {
    const entityId = newEntity();
    await conversations.saveTurn(LIVE, entityId, turn(1), CREATE);
    const rowId = (await conversations.find(LIVE, entityId))?.rowId;
    await models.entities.deleteOne({ tenantId: 'ten_1', entityId });
    await conversations.saveTurn(LIVE, entityId, turn(3), CREATE);

    await conversations.saveTurn(LIVE, entityId, turn(2), { create: false, now: 2_000, rowId });
    await conversations.saveTurn(LIVE, entityId, turn(4), { create: false, now: 2_000, rowId });

    expect(await history(entityId)).toEqual(messagesOf(turn(3)));
  });

  it('is that of the entity which was made anew after a deletion', async () => {
    const entityId = newEntity();
    await conversations.saveTurn(LIVE, entityId, turn(1), CREATE);
    expect(await history(entityId)).toHaveLength(2);
    await models.entities.deleteOne({ tenantId: 'ten_1', entityId });
    expect(await history(entityId)).toBeUndefined();

    await conversations.saveTurn(LIVE, entityId, turn(2), CREATE);

    expect(await history(entityId)).toEqual(messagesOf(turn(2)));
  });

  it('leaves subject, grade and the time of creation as they are', async () => {
    const entityId = newEntity();
    await models.entities.create({ tenantId: 'ten_1', entityId, subject: 'Art', messages: [], createdAt: 1 });

    await conversations.saveTurn(LIVE, entityId, turn(1), CREATE);

    expect(await conversations.find(LIVE, entityId)).toMatchObject({ subject: 'Art' });
    expect(await models.entities.findOne({ entityId }).lean()).toMatchObject({ createdAt: 1 });
  });

  describe('of a request whose deliveries overlap', () => {
    const late = turn(1, 'late', { claimedAt: 1 });
    const winner = turn(1, 'winner', { claimedAt: 2 });

    it('is that of the later delivery, whichever wrote last', async () => {
      const entityId = newEntity();

      await conversations.saveTurn(LIVE, entityId, winner, CREATE);
      await conversations.saveTurn(LIVE, entityId, late, CREATE);

      expect(await history(entityId)).toEqual(messagesOf(winner));
    });

    it('is not taken out by the delivery whose finish was refused', async () => {
      const entityId = newEntity();
      await conversations.saveTurn(LIVE, entityId, late, CREATE);
      await conversations.saveTurn(LIVE, entityId, winner, CREATE);

      await conversations.deleteTurn(LIVE, entityId, late);

      expect(await history(entityId)).toEqual(messagesOf(winner));
    });
  });
});
