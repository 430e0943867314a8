import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Connection } from 'mongoose';

import { createConversationRepository } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import type { ConversationRepository, Turn } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import { createModels, ensureIndexes } from '../../shared/infra/mongo/catalogue.ts';
import type { Models } from '../../shared/infra/mongo/catalogue.ts';
import { openTestMongo, uniqueName } from '../support/stores.ts';

const CREATE = { create: true, now: 1_000 };
const LIVE = { tenantId: 'ten_1', mode: 'live' } as const;
const OTHER = { tenantId: 'ten_2', mode: 'live' } as const;

const turn = (seq: number, content: string): Turn => ({
  ...{ requestId: `req_${seq}`, seq, attempt: 1 },
  messages: [{ role: 'assistant', content }],
});

let mongo: Connection;
let models: Models;
let conversations: ConversationRepository;
beforeAll(async () => {
  mongo = await openTestMongo(uniqueName('rows-'));
  models = createModels(mongo);
  await ensureIndexes(mongo);
  conversations = createConversationRepository(mongo);
});
afterAll(async () => {
  await mongo.close();
});

/** Entities of one tenant with one turn each, whose rows are known. */
async function entitiesOf(...names: string[]): Promise<string[]> {
  const entityIds = names.map((name) => uniqueName(name));
  for (const [index, entityId] of entityIds.entries()) {
    await conversations.remember(LIVE, entityId, turn(1, `of ${index}`), CREATE);
    await conversations.find(LIVE, entityId);
  }
  return entityIds;
}

async function textsOf(entityId: string): Promise<string[] | undefined> {
  return (await conversations.find(LIVE, entityId))?.history.map(({ content }) => content);
}

/** What the driver is asked for meanwhile, and the first field of each filter. */
async function callsDuring(act: () => Promise<unknown>): Promise<string[]> {
  const calls: string[] = [];
  mongo.set('debug', (_collection: string, method: string, filter: object) => {
    calls.push(`${method} by ${Object.keys(filter)[0] ?? ''}`);
  });
  try {
    await act();
  } finally {
    mongo.set('debug', false);
  }
  return calls;
}

it('entities whose rows are known are read together, each for who asked', async () => {
  const [one = '', gone = '', two = ''] = await entitiesOf('one', 'gone', 'two');
  await models.entities.deleteOne({ tenantId: 'ten_1', entityId: gone });
  await conversations.remember(OTHER, gone, turn(2, 'of another tenant'), CREATE);
  let found: unknown;

  const calls = await callsDuring(async () => {
    found = await Promise.all([one, gone, two, one].map(textsOf));
  });

  // The one that has gone is looked for by its name.
  expect(calls).toEqual(['find by _id', 'findOne by tenantId']);
  expect(found).toEqual([['of 0'], undefined, ['of 2'], ['of 0']]);
});

it('a turn of an entity whose row is known asks two things: the row by its id, and the write', async () => {
  const [entityId = ''] = await entitiesOf('known');

  const calls = await callsDuring(async () => {
    const rowId = (await conversations.find(LIVE, entityId))?.rowId;
    await conversations.remember(LIVE, entityId, turn(2, 'second'), { create: false, now: 2_000, rowId });
  });

  expect(calls).toEqual(['findOne by _id', 'updateOne by _id']);
  expect(await textsOf(entityId)).toEqual(['of 0', 'second']);
});

it('entities are each their own, though their names are alike and their rows known', async () => {
  const entityId = uniqueName('same');
  const spaces = [LIVE, { ...LIVE, mode: 'test' }, OTHER] as const;
  for (const [index, space] of spaces.entries())
    await conversations.remember(space, entityId, turn(1, `of ${index}`), CREATE);
  const textOf = async (space: (typeof spaces)[number]) => (await conversations.find(space, entityId))?.history;

  for (let time = 0; time < 2; time += 1)
    expect(await Promise.all(spaces.map(textOf))).toMatchObject(spaces.map((_, index) => [{ content: `of ${index}` }]));
});
