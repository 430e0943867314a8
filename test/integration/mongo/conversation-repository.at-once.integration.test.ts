import { expect, it } from '@jest/globals';

import type { Turn } from '../../../shared/mongo/entities/conversation-repository.ts';
import { CREATE, LIVE, OTHER, replyOf, useConversations } from '../../support/conversation-lab.ts';
import { uniqueName } from '../../support/stores.ts';

/** More than a document of MongoDB may have. */
const TOO_LARGE = 17 * 1024 * 1024;

const lab = useConversations();

/** Saves a turn of each entity at once, into the rows that were found. */
async function saveAll(
  entityIds: readonly string[],
  turnOf: (index: number) => Turn,
): Promise<PromiseSettledResult<void>[]> {
  const store = lab.conversations;
  const found = await Promise.all(entityIds.map((entityId) => store.find(LIVE, entityId)));
  return Promise.allSettled(
    entityIds.map((entityId, index) =>
      store.saveTurn(LIVE, entityId, turnOf(index), { create: false, now: 2_000, rowId: found[index]?.rowId }),
    ),
  );
}

it('turns are stored once, where one of those that come together is refused, out of order or of a second delivery', async () => {
  const entityIds = await lab.entitiesOf(['one', 'two', 'late', 'forgotten', 'again', 'in-order']);
  const [one = '', two = '', late = '', forgotten = '', again = '', inOrder = ''] = entityIds;
  await saveAll([late], () => replyOf(9, 'ninth'));
  await saveAll([again], () => replyOf(5, 'first delivery'));
  await lab.models.entities.updateOne({ tenantId: 'ten_1', entityId: forgotten }, { forgottenSeq: 5 });

  await saveAll(entityIds, () => ({ ...replyOf(5, 'fifth'), claimedAt: 2 }));

  expect(await lab.textsOf(late)).toEqual(['first', 'fifth', 'ninth']);
  expect(await lab.textsOf(forgotten)).toEqual(['first']);
  for (const entityId of [one, two, again, inOrder]) expect(await lab.textsOf(entityId)).toEqual(['first', 'fifth']);
});

it('a turn that can never be stored fails alone', async () => {
  const entityIds = await lab.entitiesOf(['one', 'two', 'large', 'beside']);

  const saved = await saveAll(entityIds, (index) => replyOf(2, index === 2 ? 'x'.repeat(TOO_LARGE) : 'second'));

  expect(saved.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  const texts = await Promise.all(entityIds.map(lab.textsOf));
  expect(texts).toEqual([['first', 'second'], ['first', 'second'], ['first'], ['first', 'second']]);
});

it('a turn goes into no row that has gone meanwhile', async () => {
  const entityIds = await lab.entitiesOf(['one', 'two', 'gone', 'stays']);
  const [, , gone = '', stays = ''] = entityIds;
  const found = await Promise.all(entityIds.map((entityId) => lab.conversations.find(LIVE, entityId)));
  await lab.models.entities.deleteOne({ tenantId: 'ten_1', entityId: gone });
  await lab.conversations.saveTurn(LIVE, gone, replyOf(7, 'made anew'), CREATE);

  await Promise.all(
    entityIds.map((entityId, index) =>
      lab.conversations.saveTurn(LIVE, entityId, replyOf(8, 'eighth'), {
        create: false,
        now: 2_000,
        rowId: found[index]?.rowId,
      }),
    ),
  );

  expect(await lab.textsOf(gone)).toEqual(['made anew']);
  expect(await lab.textsOf(stays)).toEqual(['first', 'eighth']);
});

it('entities are each their own, though their names are alike', async () => {
  const entityId = uniqueName('same');
  const spaces = [LIVE, { ...LIVE, mode: 'test' }, OTHER] as const;
  for (const [index, space] of spaces.entries())
    await lab.conversations.saveTurn(space, entityId, replyOf(1, `of ${index}`), CREATE);
  const textOf = async (space: (typeof spaces)[number]) => (await lab.conversations.find(space, entityId))?.history;

  for (let time = 0; time < 2; time += 1)
    expect(await Promise.all(spaces.map(textOf))).toMatchObject(spaces.map((_, index) => [{ content: `of ${index}` }]));
});
