import { expect, it } from '@jest/globals';

import { createConversationRepository } from '../../../shared/mongo/entities/conversation-repository.ts';
import type { ConversationRepository, Turn } from '../../../shared/mongo/entities/conversation-repository.ts';
import { connectMongo } from '../../../shared/mongo/connection.ts';
import { CREATE, LIVE, replyOf, useConversations } from '../../support/conversation-lab.ts';
import { proxyTo } from '../../support/store-proxy.ts';
import { mongoUri, uniqueName } from '../../support/stores.ts';
import { waitFor } from '../../support/wait-for.ts';

/** More than a document of MongoDB may have. */
const TOO_LARGE = 17 * 1024 * 1024;

const database = uniqueName('changes-');
const lab = useConversations(database);

/** Saves a turn of each entity at once, into the rows that were found. */
async function saveAll(
  entityIds: readonly string[],
  turnOf: (index: number) => Turn,
  store: ConversationRepository = lab.conversations,
): Promise<PromiseSettledResult<void>[]> {
  const found = await Promise.all(entityIds.map((entityId) => store.find(LIVE, entityId)));
  return Promise.allSettled(
    entityIds.map((entityId, index) =>
      store.saveTurn(LIVE, entityId, turnOf(index), { create: false, now: 2_000, rowId: found[index]?.rowId }),
    ),
  );
}

it('turns that come while two are written go together, each into its own row', async () => {
  const entityIds = await lab.entitiesOf(['a', 'b', 'c', 'd', 'e', 'f']);
  const calls: string[] = [];
  lab.mongo.set('debug', (_collection: string, method: string) => calls.push(method));

  await saveAll(entityIds, (index) => replyOf(2, `of ${index}`));

  lab.mongo.set('debug', false);
  expect(calls.filter((method) => !method.startsWith('find'))).toEqual(['updateOne', 'updateOne', 'bulkWrite']);
  expect(await Promise.all(entityIds.map(lab.textsOf))).toEqual(entityIds.map((_, index) => ['first', `of ${index}`]));
});

it('turns are stored once, where one of those that go together is refused, out of order or of a second delivery', async () => {
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

it('turns of one entity that go together are in the order of acceptance', async () => {
  const [entityId = ''] = await lab.entitiesOf(['alone']);
  const order = [4, 3, 8, 6, 2, 7, 5];

  await saveAll(
    order.map(() => entityId),
    (index) => replyOf(order[index] ?? 0, `${order[index] ?? 0}`),
  );

  expect(await lab.textsOf(entityId)).toEqual(['first', '2', '3', '4', '5', '6', '7', '8']);
});

it('a turn that can never be stored fails alone', async () => {
  const entityIds = await lab.entitiesOf(['one', 'two', 'large', 'beside']);

  const saved = await saveAll(entityIds, (index) => replyOf(2, index === 2 ? 'x'.repeat(TOO_LARGE) : 'second'));

  expect(saved.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  const texts = await Promise.all(entityIds.map(lab.textsOf));
  expect(texts).toEqual([['first', 'second'], ['first', 'second'], ['first'], ['first', 'second']]);
});

it('a turn goes into no row that has gone while it waited for others', async () => {
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

it('a turn does not wait for calls that hang', async () => {
  const entityIds = await lab.entitiesOf(['a', 'b', 'c', 'd']);
  const proxy = await proxyTo(mongoUri(database));
  const cutOff = await connectMongo(proxy.url);
  const store = createConversationRepository(cutOff);
  const found = await Promise.all(entityIds.map((entityId) => store.find(LIVE, entityId)));
  const save = (index: number) =>
    store.saveTurn(LIVE, entityIds[index] ?? '', replyOf(2, 'second'), {
      create: false,
      now: 2_000,
      rowId: found[index]?.rowId,
    });
  const tried: number[] = [];
  cutOff.set('debug', (_collection: string, method: string) => {
    if (!method.startsWith('find')) tried.push(performance.now());
  });

  proxy.stall();
  let ended = 0;
  const saving = [save(0), save(1), save(2)].map((each) => each.finally(() => (ended += 1)));
  const saved = Promise.allSettled(saving);
  await waitFor(() => Promise.resolve(tried.length === 3 ? true : undefined), 'the third call');
  // The first two hang still.
  expect(ended).toBe(0);
  proxy.restore();

  expect((await saved).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
  expect(await Promise.all(entityIds.slice(0, 3).map(lab.textsOf))).toEqual(Array(3).fill(['first', 'second']));
  await cutOff.close();
  await proxy.close();
});
