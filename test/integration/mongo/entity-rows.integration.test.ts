import { expect, it } from '@jest/globals';

import { CREATE, LIVE, OTHER, replyOf, useConversations } from '../../support/conversation-lab.ts';
import { uniqueName } from '../../support/stores.ts';

const lab = useConversations();

/** Entities of one tenant with one turn each, whose rows are known. */
async function knownEntities(...names: string[]): Promise<string[]> {
  const entityIds = await lab.entitiesOf(names, (index) => `of ${index}`);
  for (const entityId of entityIds) await lab.textsOf(entityId);
  return entityIds;
}

/** What the driver is asked for meanwhile, and the first field of each filter. */
async function callsDuring(act: () => Promise<unknown>): Promise<string[]> {
  const calls: string[] = [];
  lab.mongo.set('debug', (_collection: string, method: string, filter: object) => {
    calls.push(`${method} by ${Object.keys(filter)[0] ?? ''}`);
  });
  try {
    await act();
  } finally {
    lab.mongo.set('debug', false);
  }
  return calls;
}

it('entities whose rows are known are read together, each for who asked', async () => {
  const [one = '', gone = '', two = ''] = await knownEntities('one', 'gone', 'two');
  await lab.models.entities.deleteOne({ tenantId: 'ten_1', entityId: gone });
  await lab.conversations.saveTurn(OTHER, gone, replyOf(2, 'of another tenant'), CREATE);
  let found: unknown;

  const calls = await callsDuring(async () => {
    found = await Promise.all([one, gone, two, one].map(lab.textsOf));
  });

  // The one that has gone is looked for by its name.
  expect(calls).toEqual(['find by _id', 'findOne by tenantId']);
  expect(found).toEqual([['of 0'], undefined, ['of 2'], ['of 0']]);
});

it('a turn of an entity whose row is known asks two things: the row by its id, and the write', async () => {
  const [entityId = ''] = await knownEntities('known');

  const calls = await callsDuring(async () => {
    const rowId = (await lab.conversations.find(LIVE, entityId))?.rowId;
    await lab.conversations.saveTurn(LIVE, entityId, replyOf(2, 'second'), { create: false, now: 2_000, rowId });
  });

  expect(calls).toEqual(['findOne by _id', 'updateOne by _id']);
  expect(await lab.textsOf(entityId)).toEqual(['of 0', 'second']);
});

it('entities are each their own, though their names are alike and their rows known', async () => {
  const entityId = uniqueName('same');
  const spaces = [LIVE, { ...LIVE, mode: 'test' }, OTHER] as const;
  for (const [index, space] of spaces.entries())
    await lab.conversations.saveTurn(space, entityId, replyOf(1, `of ${index}`), CREATE);
  const textOf = async (space: (typeof spaces)[number]) => (await lab.conversations.find(space, entityId))?.history;

  for (let time = 0; time < 2; time += 1)
    expect(await Promise.all(spaces.map(textOf))).toMatchObject(spaces.map((_, index) => [{ content: `of ${index}` }]));
});
