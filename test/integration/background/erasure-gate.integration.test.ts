import { beforeAll, beforeEach, expect, it } from '@jest/globals';

import { gateAnswers, gateConversations, createErasureGate } from '../../../shared/erasure-gate.ts';
import type { ErasureGate } from '../../../shared/erasure-gate.ts';
import { createPseudonyms } from '../../../shared/domain/pseudonyms.ts';
import { createAnswerRepository } from '../../../shared/mongo/requests/answer-repository.ts';
import { createConversationRepository } from '../../../shared/mongo/entities/conversation-repository.ts';
import { createConversationEraser } from '../../../shared/mongo/compliance/conversation-eraser.ts';
import { createErasureRepository } from '../../../shared/mongo/compliance/erasure-repository.ts';
import type { ErasureRepository } from '../../../shared/mongo/compliance/erasure-repository.ts';
import { createModels, ensureIndexes } from '../../../shared/mongo/administration/catalogue.ts';
import type { Models } from '../../../shared/mongo/administration/catalogue.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { settlementOf } from '../../support/compliance-lab.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const pseudonyms = createPseudonyms(Buffer.alloc(32, 7));
/** Milliseconds of the deletion, and its place in the order of acceptance: microseconds. */
const NOW = 1_700_000_000_000;
const SEQ = NOW * 1_000;

const mongo = useStarted('mongo', () => openTestMongo(uniqueName('gate-')));
let models: Models;
let erasures: ErasureRepository;
let gate: ErasureGate;
let tenantId: string;
beforeAll(async () => {
  models = createModels(mongo);
  await ensureIndexes(mongo);
  erasures = createErasureRepository(mongo);
  gate = createErasureGate({ erasures, pseudonyms });
});
beforeEach(() => {
  tenantId = newId('ten');
});

const live = () => ({ tenantId, mode: 'live' }) as const;
const markEntity = (seq = SEQ) =>
  erasures.mark({ tenantId, mode: 'any' }, pseudonyms.of(tenantId, 'pupil'), { seq, now: Date.now() });
const markTenant = () => erasures.mark({ tenantId, mode: 'any' }, undefined, { seq: SEQ, now: Date.now() });

const turnAt = (seq: number) => ({
  ...{ requestId: newId('req'), seq, claimedAt: 1 },
  messages: [{ role: 'user' as const, content: `${seq}` }],
});

it('lets a request that was accepted before the deletion store nothing, and a later one all', async () => {
  const conversations = gateConversations(createConversationRepository(mongo), gate);
  const save = (entityId: string, seq: number) =>
    conversations.saveTurn(live(), entityId, turnAt(seq), { create: true, now: NOW });
  await markEntity();

  await save('pupil', SEQ);
  expect(await models.entities.countDocuments({ tenantId })).toBe(0);

  await save('neighbour', SEQ);
  await save('pupil', SEQ + 1);
  expect((await conversations.find(live(), 'pupil'))?.history).toEqual([{ role: 'user', content: `${SEQ + 1}` }]);
  expect((await conversations.find(live(), 'neighbour'))?.history).toHaveLength(1);
});

it('brings no entity back whose deletion came between the look and the write', async () => {
  const conversations = createConversationRepository(mongo);
  const sleepy = gateConversations(
    {
      ...conversations,
      // The whole deletion happens here: its mark, the row, and its tombstone.
      async saveTurn(...turn) {
        await markEntity();
        await models.entities.deleteMany({ tenantId });
        await conversations.saveTurn(...turn);
      },
    },
    gate,
  );

  await sleepy.saveTurn(live(), 'pupil', turnAt(SEQ), { create: true, now: NOW });

  expect(await models.entities.find({ tenantId }).lean()).toEqual([]);
});

it('brings no answer back whose deletion came between the look and the write', async () => {
  const answers = createAnswerRepository(mongo);
  const sleepy = gateAnswers(
    {
      ...answers,
      // The whole deletion happens here: it finds no answer yet.
      async store(answer) {
        await markEntity();
        await answers.store(answer);
      },
    },
    gate,
  );
  const fields = { state: 'done', status: 'completed', acceptedAt: String(NOW), finishedAt: String(NOW + 5) };

  await sleepy.store({
    ...live(),
    ...{ requestId: newId('req'), entityId: 'pupil', fields, expiresAt: Date.now() + 60_000 },
    entries: [{ lastSeq: 1, payload: 'secret' }],
  });

  expect(await models.answers.find({ tenantId }).lean()).toEqual([]);
});

it('takes only its own turn out of an entity that was made anew meanwhile', async () => {
  const conversations = createConversationRepository(mongo);
  const later = turnAt(SEQ + 1);
  const sleepy = gateConversations(
    {
      ...conversations,
      async saveTurn(...turn) {
        await markEntity();
        await conversations.saveTurn(live(), 'pupil', later, { create: true, now: NOW + 1 });
        await conversations.saveTurn(...turn);
      },
    },
    gate,
  );

  await sleepy.saveTurn(live(), 'pupil', turnAt(SEQ), { create: true, now: NOW });

  expect((await conversations.find(live(), 'pupil'))?.history).toEqual(later.messages);
});

it('looks for a deletion once for all turns of a row, and stores none in a row made anew', async () => {
  const conversations = createConversationRepository(mongo);
  let looks = 0;
  const gated = gateConversations(conversations, {
    ...gate,
    erasedSeq(...entity) {
      looks += 1;
      return gate.erasedSeq(...entity);
    },
  });
  await gated.saveTurn(live(), 'pupil', turnAt(SEQ - 5), { create: true, now: NOW });
  const rowId = (await gated.find(live(), 'pupil'))?.rowId;
  for (const seq of [SEQ - 4, SEQ - 3])
    await gated.saveTurn(live(), 'pupil', turnAt(seq), { create: false, now: NOW, rowId });
  expect(looks).toBe(1);
  expect((await conversations.find(live(), 'pupil'))?.history).toHaveLength(3);

  await markEntity();
  await models.entities.deleteMany({ tenantId });
  await gated.saveTurn(live(), 'pupil', turnAt(SEQ - 2), { create: false, now: NOW, rowId });
  expect(await models.entities.countDocuments({ tenantId })).toBe(0);

  const later = turnAt(SEQ + 1);
  await gated.saveTurn(live(), 'pupil', later, { create: true, now: NOW });
  const anew = (await gated.find(live(), 'pupil'))?.rowId;
  await gated.saveTurn(live(), 'pupil', turnAt(SEQ - 1), { create: false, now: NOW, rowId });
  await gated.saveTurn(live(), 'pupil', turnAt(SEQ), { create: false, now: NOW, rowId: anew });
  expect((await conversations.find(live(), 'pupil'))?.history).toEqual(later.messages);
});

it('keeps no answer of such a request, nor any of a tenant whose conversations were deleted', async () => {
  const answers = gateAnswers(createAnswerRepository(mongo), gate);
  const keep = async (entityId: string | undefined, acceptedAt: number) => {
    const requestId = newId('req');
    const entity = entityId === undefined ? {} : { entityId };
    const fields = { acceptedAt: String(acceptedAt) };
    await answers.store({ requestId, ...live(), fields, entries: [], expiresAt: Date.now() + 60_000, ...entity });
    return (await models.answers.countDocuments({ _id: requestId })) === 1;
  };
  await markEntity();
  expect([await keep('pupil', NOW), await keep('pupil', NOW + 1), await keep(undefined, NOW)]).toEqual([
    ...[false, true, true],
  ]);
  await markTenant();
  expect([await keep('other', NOW), await keep(undefined, NOW), await keep(undefined, NOW + 1)]).toEqual([
    ...[false, false, true],
  ]);
});

it('leaves intent and answer of a request that was accepted after the deletion', async () => {
  const ids = [newId('req'), newId('req')] as const;
  const times = [NOW, NOW + 1];
  const expiresAt = new Date(Date.now() + 60_000);
  await models.requestIntents.insertMany(
    ids.map((_id, index) => {
      return { _id, tenantId, shard: 0, envelopeJson: '{}', acceptedAt: times[index] ?? 0, lookAt: NOW, expiresAt };
    }),
  );
  await models.answers.insertMany(
    ids.map((_id, index) => {
      return { _id, tenantId, fields: { acceptedAt: String(times[index]) }, entries: [], expiresAt };
    }),
  );

  const { answers } = createConversationEraser(mongo);
  expect(await answers({ tenantId, mode: 'any' }, SEQ)).toEqual({ answers: 1 });

  for (const rows of [models.requestIntents.find({ tenantId }), models.answers.find({ tenantId })])
    expect((await rows.lean()).map(({ _id }) => _id)).toEqual([ids[1]]);
});

it('books what is owed under the pseudonym', async () => {
  const record = (entityId: string, acceptedAt: number) =>
    settlementOf({ tenantId, keyId: '', key: '' }, entityId, acceptedAt);
  const names = async (...records: ReturnType<typeof record>[]) =>
    (await gate.pseudonymize(records)).map(({ entityId }) => entityId);
  const pupil = pseudonyms.of(tenantId, 'pupil');
  const without = { ...record('', NOW) };
  delete without.entityId;

  expect(await names(record('pupil', NOW))).toEqual(['pupil']);
  await markEntity();
  expect(await names(record('pupil', NOW), record('pupil', NOW + 1), record('neighbour', NOW), without)).toEqual([
    ...[pupil, 'pupil', 'neighbour', undefined],
  ]);
  await markTenant();
  expect(await names(record('neighbour', NOW))).toEqual([pseudonyms.of(tenantId, 'neighbour')]);
  expect(await gate.nameOf(live(), 'neighbour', SEQ)).toBe(pseudonyms.of(tenantId, 'neighbour'));
  expect(await gate.nameOf(live(), 'neighbour', SEQ + 1)).toBe('neighbour');
});

it('stands in front of the requests of one mode where the deletion is of that mode alone', async () => {
  const test = () => ({ tenantId, mode: 'test' }) as const;
  await erasures.mark(test(), pseudonyms.of(tenantId, 'pupil'), { seq: SEQ, now: Date.now() });

  expect([await gate.isErased(test(), 'pupil', SEQ), await gate.isErased(live(), 'pupil', SEQ)]).toEqual([true, false]);
  await erasures.mark(test(), undefined, { seq: SEQ, now: Date.now() });
  expect([await gate.isErased(test(), 'x', SEQ), await gate.isErased(live(), 'x', SEQ)]).toEqual([true, false]);
  await markTenant();
  expect(await gate.isErased(live(), 'x', SEQ)).toBe(true);
});

it('keeps to the latest of several deletions', async () => {
  await markEntity(SEQ + 5);
  await markEntity(SEQ);

  expect(await gate.isErased(live(), 'pupil', SEQ + 5)).toBe(true);
});
