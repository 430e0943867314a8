import { randomBytes } from 'node:crypto';

import { beforeAll, describe, expect, it } from '@jest/globals';

import { createConversationRepository } from '../../../shared/mongo/entities/conversation-repository.ts';
import type { ConversationRepository } from '../../../shared/mongo/entities/conversation-repository.ts';
import { createEntityRepository } from '../../../shared/mongo/entities/entity-repository.ts';
import type { EntityRepository } from '../../../shared/mongo/entities/entity-repository.ts';
import { createConversationEraser } from '../../../shared/mongo/compliance/conversation-eraser.ts';
import { createModels, ensureIndexes } from '../../../shared/mongo/administration/catalogue.ts';
import type { Models } from '../../../shared/mongo/administration/catalogue.ts';
import { connectMongo } from '../../../shared/mongo/connection.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri, openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const TENANT = 'ten_1';
const LIVE = { tenantId: TENANT, mode: 'live' } as const;
const TEST = { tenantId: TENANT, mode: 'test' } as const;
const moment = (seq: number) => ({ seq, now: seq });
/** A request that names the entity is in flight. */
const mayCome = () => Promise.resolve(true);

let models: Models;
let entities: EntityRepository;
let conversations: ConversationRepository;
const mongo = useStarted('mongo', () => openTestMongo(uniqueName('ent-')));
beforeAll(async () => {
  models = createModels(mongo);
  await ensureIndexes(mongo);
  entities = createEntityRepository(mongo);
  conversations = createConversationRepository(mongo);
});

const newEntity = () => `entity ${randomBytes(6).toString('hex')}`;

const turnOf = (seq: number) => ({
  requestId: `req_${seq}`,
  seq,
  claimedAt: 1,
  messages: [{ role: 'user', content: `turn ${seq}` } as const],
});

/** Stores what a request says that was accepted at `seq`. */
async function saveTurn(entityId: string, seq: number, create: boolean): Promise<void> {
  await conversations.saveTurn(LIVE, entityId, turnOf(seq), { create, now: seq });
}

async function turns(entityId: string): Promise<string[] | undefined> {
  return (await conversations.find(LIVE, entityId))?.history.map(({ content }) => content);
}

describe('a deleted entity', () => {
  it.each([true, false])('hears nothing of a request accepted before (it makes unknown ones: %p)', async (create) => {
    const entityId = newEntity();
    await saveTurn(entityId, 1, true);
    await entities.remove(LIVE, entityId, moment(10), mayCome);

    for (const seq of [9, 10]) await saveTurn(entityId, seq, create);

    expect(await turns(entityId)).toBeUndefined();
    expect(await models.entities.findOne({ tenantId: TENANT, entityId }).lean()).toMatchObject({ messages: [] });
  });

  it('comes back with a request accepted after it, which found it unknown', async () => {
    const entityId = newEntity();
    await entities.insert(LIVE, entityId, { name: 'Ada' }, { createdAt: 1 });
    await entities.remove(LIVE, entityId, moment(10), mayCome);

    await saveTurn(entityId, 11, true);
    await saveTurn(entityId, 9, true);

    expect(await turns(entityId)).toEqual(['turn 11']);
    const row = await models.entities.findOne({ tenantId: TENANT, entityId }).lean();
    expect(row).not.toHaveProperty('expiresAt');
    expect(row).not.toHaveProperty('name');
  });

  it('a deleted entity is deleted once, by whoever is first', async () => {
    const entityId = newEntity();
    await entities.insert(LIVE, entityId, {}, { createdAt: 1 });

    const removals = [1, 2, 3, 4].map((seq) => entities.remove(LIVE, entityId, moment(seq), mayCome));

    expect((await Promise.all(removals)).filter(Boolean)).toHaveLength(1);
  });

  it('leaves a tombstone where it was unknown; many at once make one', async () => {
    const entityId = newEntity();

    const removals = await Promise.all(
      [1, 2, 3, 4].map((seq) => entities.remove(LIVE, entityId, moment(seq), mayCome)),
    );

    expect(removals).toEqual([false, false, false, false]);
    const rows = await models.entities.find({ tenantId: TENANT, entityId }).lean();
    expect(rows).toMatchObject([{ forgottenSeq: 4 }]);
  });

  it('keeps the latest deletion, whatever the order of the writes', async () => {
    const entityId = newEntity();
    await entities.remove(LIVE, entityId, moment(20), mayCome);
    await entities.remove(LIVE, entityId, moment(10), mayCome);

    await saveTurn(entityId, 15, true);

    expect(await turns(entityId)).toBeUndefined();
  });
});

describe('a new entity', () => {
  it('is made once of many at the same time, of nothing or of a tombstone', async () => {
    for (const isBuried of [false, true]) {
      const entityId = newEntity();
      if (isBuried) await entities.remove(LIVE, entityId, moment(1), mayCome);

      const made = await Promise.all(
        [1, 2, 3, 4, 5].map((now) => entities.insert(LIVE, entityId, {}, { createdAt: now })),
      );

      expect(made.filter(Boolean)).toHaveLength(1);
    }
  });
});

describe('the entities of a space', () => {
  const space = (mode: 'live' | 'test') => ({ tenantId: 'ten_full', mode });
  const countOf = async (mode: string) => {
    const row = await models.entityCounts.findById(`ten_full ${mode}`).lean();
    return row === null ? undefined : [row.entities, row.bytes];
  };

  it('are refused beyond their number and their bytes, until some are deleted', async () => {
    const few = createEntityRepository(mongo, { entities: 2, bytes: 100 });
    const full = expect.objectContaining({ code: 'conflict' });
    const make = (entityId: string, mode: 'live' | 'test' = 'live') =>
      few.insert(space(mode), entityId, { name: 'Ada' }, { createdAt: 1 });
    await make('one');
    await conversations.saveTurn(space('live'), 'two', turnOf(1), { create: true, now: 1 });

    await expect(make('three')).rejects.toEqual(full);
    await expect(few.put(space('live'), 'three', {}, 1)).rejects.toEqual(full);
    expect(await few.update(space('live'), 'one', { name: 'Ada' })).toMatchObject({ name: 'Ada' });
    expect(await make('three', 'test')).toBe(true);
    await few.remove(space('live'), 'two', moment(2), mayCome);
    expect(await make('three')).toBe(true);
    expect(await countOf('live')).toEqual([2, 'oneAdathreeAda'.length]);

    await few.remove(space('live'), 'three', moment(3), mayCome);
    await few.update(space('live'), 'one', { metadataJson: 'x'.repeat(100) });
    await expect(make('four')).rejects.toEqual(full);
    await expect(few.update(space('live'), 'one', { name: 'Eve' })).rejects.toEqual(full);
    expect(await few.update(space('live'), 'one', { metadataJson: null })).not.toHaveProperty('metadataJson');
    expect(await make('four')).toBe(true);
    const { entities: erase } = createConversationEraser(mongo);
    await erase({ tenantId: 'ten_full', mode: 'any' });
    expect([await countOf('live'), await countOf('test')]).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });
});

describe('the history of an entity', () => {
  it('is read in parts: MongoDB sends the texts of a part and no others', async () => {
    const meter = await openTcpProxy(mongoUri(mongo.name));
    const metered = await connectMongo(meter.url);
    const { history } = createEntityRepository(metered);
    const entityId = newEntity();
    const text = 'x'.repeat(10_000);
    await models.entities.create({
      ...{ tenantId: TENANT, entityId, createdAt: 1 },
      messages: Array.from({ length: 50 }, (_, seq) => {
        return { role: 'user', content: `${seq} ${text}`, requestId: `req_${seq}`, seq, attempt: 1 };
      }),
    });
    await history(LIVE, entityId, () => ({ from: 0, count: 0 }));
    const before = meter.bytesOut();

    const part = await history(LIVE, entityId, ({ length }) => ({ from: length - 3, count: 2 }));

    expect(part?.map(({ requestId, content }) => [requestId, content.length])).toEqual([
      ['req_47', text.length + 3],
      ['req_48', text.length + 3],
    ]);
    expect(meter.bytesOut() - before).toBeLessThan(3 * text.length);
    await metered.close();
    await meter.close();
  });
});

describe('entities of one entity_id, live and test', () => {
  it('are two, each with its own fields, history, list and end', async () => {
    const entityId = newEntity();
    await entities.insert(LIVE, entityId, { name: 'Ada' }, { createdAt: 1 });

    expect(await entities.find(TEST, entityId)).toBeUndefined();
    expect(await entities.insert(TEST, entityId, { name: 'Nobody' }, { createdAt: 2 })).toBe(true);
    await conversations.saveTurn(TEST, entityId, turnOf(3), { create: true, now: 3 });
    expect(await entities.update(LIVE, entityId, { grade: '5' })).toMatchObject({ name: 'Ada', grade: '5' });

    expect(await entities.find(TEST, entityId)).toMatchObject({ name: 'Nobody' });
    const all = (ids: readonly string[]) => ({ from: 0, count: ids.length });
    expect(await entities.history(LIVE, entityId, all)).toEqual([]);
    expect(await entities.history(TEST, entityId, all)).toHaveLength(1);
    expect(await entities.remove(TEST, entityId, moment(10), mayCome)).toBe(true);
    expect(await entities.find(LIVE, entityId)).toMatchObject({ name: 'Ada' });
    expect(await entities.find(TEST, entityId)).toBeUndefined();
    await conversations.saveTurn(LIVE, entityId, turnOf(5), { create: true, now: 5 });
    expect(await turns(entityId)).toEqual(['turn 5']);
    const listed = await entities.list(TEST, { limit: 100, order: 'desc' });
    expect(listed.map((each) => each.entityId)).not.toContain(entityId);
  });

  it('are made by their first requests, each where it belongs', async () => {
    const entityId = newEntity();

    for (const [space, seq] of [[TEST, 1] as const, [LIVE, 2] as const])
      await conversations.saveTurn(space, entityId, turnOf(seq), { create: true, now: seq });

    expect((await conversations.find(TEST, entityId))?.history).toMatchObject([{ content: 'turn 1' }]);
    expect((await conversations.find(LIVE, entityId))?.history).toMatchObject([{ content: 'turn 2' }]);
    await conversations.deleteTurn(LIVE, entityId, { requestId: 'req_1', claimedAt: 9 });
    expect((await conversations.find(TEST, entityId))?.history).toHaveLength(1);
  });
});
