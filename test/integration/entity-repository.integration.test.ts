import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Connection } from 'mongoose';

import { createConversationRepository } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import type { ConversationRepository } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import { createEntityRepository } from '../../shared/infra/mongo/entities/entity-repository.ts';
import type { EntityRepository } from '../../shared/infra/mongo/entities/entity-repository.ts';
import { createModels, ensureIndexes } from '../../shared/infra/mongo/catalogue.ts';
import type { Models } from '../../shared/infra/mongo/catalogue.ts';
import { openTestMongo, uniqueName } from '../support/stores.ts';

const TENANT = 'ten_1';
const moment = (seq: number) => ({ seq, now: seq });

let mongo: Connection;
let models: Models;
let entities: EntityRepository;
let conversations: ConversationRepository;
beforeAll(async () => {
  mongo = await openTestMongo(uniqueName('ent-'));
  models = createModels(mongo);
  await ensureIndexes(mongo);
  entities = createEntityRepository(mongo);
  conversations = createConversationRepository(mongo);
});
afterAll(async () => {
  await mongo.close();
});

const newEntity = () => `entity ${randomBytes(6).toString('hex')}`;

/** Stores what a request says that was accepted at `seq`. */
async function remember(entityId: string, seq: number, create: boolean): Promise<void> {
  const turn = {
    requestId: `req_${seq}`,
    seq,
    attempt: 1,
    messages: [{ role: 'user', content: `turn ${seq}` } as const],
  };
  await conversations.remember(TENANT, entityId, turn, { create, now: seq });
}

async function turns(entityId: string): Promise<string[] | undefined> {
  return (await conversations.find(TENANT, entityId))?.history.map(({ content }) => content);
}

describe('a deleted entity', () => {
  it.each([true, false])('hears nothing of a request accepted before (it makes unknown ones: %p)', async (create) => {
    const entityId = newEntity();
    await remember(entityId, 1, true);
    await entities.remove(TENANT, entityId, moment(10));

    for (const seq of [9, 10]) await remember(entityId, seq, create);

    expect(await turns(entityId)).toBeUndefined();
    expect(await models.entities.findOne({ tenantId: TENANT, entityId }).lean()).toMatchObject({ messages: [] });
  });

  it('comes back with a request accepted after it, which found it unknown', async () => {
    const entityId = newEntity();
    await entities.insert(TENANT, entityId, { name: 'Ada' }, 1);
    await entities.remove(TENANT, entityId, moment(10));

    await remember(entityId, 11, true);
    await remember(entityId, 9, true);

    expect(await turns(entityId)).toEqual(['turn 11']);
    const row = await models.entities.findOne({ tenantId: TENANT, entityId }).lean();
    expect(row).not.toHaveProperty('expiresAt');
    expect(row).not.toHaveProperty('name');
  });

  it('a deleted entity is deleted once, by whoever is first', async () => {
    const entityId = newEntity();
    await entities.insert(TENANT, entityId, {}, 1);

    const removals = [1, 2, 3, 4].map((seq) => entities.remove(TENANT, entityId, moment(seq)));

    expect((await Promise.all(removals)).filter(Boolean)).toHaveLength(1);
  });

  it('leaves a tombstone where it was unknown; many at once make one', async () => {
    const entityId = newEntity();

    const removals = await Promise.all([1, 2, 3, 4].map((seq) => entities.remove(TENANT, entityId, moment(seq))));

    expect(removals).toEqual([false, false, false, false]);
    const rows = await models.entities.find({ tenantId: TENANT, entityId }).lean();
    expect(rows).toMatchObject([{ forgottenSeq: 4 }]);
  });

  it('keeps the latest deletion, whatever the order of the writes', async () => {
    const entityId = newEntity();
    await entities.remove(TENANT, entityId, moment(20));
    await entities.remove(TENANT, entityId, moment(10));

    await remember(entityId, 15, true);

    expect(await turns(entityId)).toBeUndefined();
  });

  it('a deleted entity is one of its tenant', async () => {
    const entityId = newEntity();
    await remember(entityId, 1, true);
    await entities.remove('ten_2', entityId, moment(10));
    expect(await turns(entityId)).toEqual(['turn 1']);
  });
});

describe('a new entity', () => {
  it('is made once of many at the same time, of nothing or of a tombstone', async () => {
    for (const isBuried of [false, true]) {
      const entityId = newEntity();
      if (isBuried) await entities.remove(TENANT, entityId, moment(1));

      const made = await Promise.all([1, 2, 3, 4, 5].map((now) => entities.insert(TENANT, entityId, {}, now)));

      expect(made.filter(Boolean)).toHaveLength(1);
    }
  });
});
